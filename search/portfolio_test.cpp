// Whose turn it is, and that both learn from what either tried. What holds for every sampler is in
// samplers_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/testing.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;
using ::testing::StartsWith;

Problem problem_with(const std::string& algorithm) {
  return problem_of({real("x", 0, 1), choice("kind", {"a", "b"})}, algorithm, 3);
}

std::unique_ptr<Sampler> sampler_of(const std::string& algorithm) {
  return std::move(make_sampler(problem_with(algorithm))).value();
}

// What the portfolio tries, each with a result.
History search_of(std::size_t trials) {
  const auto sampler = sampler_of("portfolio");
  History out;
  while (out.trials.size() < trials) {
    const Json point = sampler->suggest(out, 1).points.at(0);
    const double x = point.find("x")->as_double();
    out.trials.push_back(point);
    out.events.push_back(result(static_cast<std::int64_t>(out.trials.size()) - 1, (x - 0.3) * x));
  }
  return out;
}

Json next_of(const std::string& algorithm, const History& history) {
  return sampler_of(algorithm)->suggest(history, 1).points.at(0);
}

TEST(Portfolio, EachThirdTrialIsTpesAfterTheFirstEight) {
  const History all = search_of(24);
  for (std::size_t trial = 4; trial < all.trials.size(); ++trial) {  // both start with Sobol points
    History before = all;
    before.trials.resize(trial);
    before.events.resize(trial);
    const bool second = trial >= 8 && trial % 3 == 2;
    EXPECT_EQ(all.trials[trial], next_of(second ? "tpe" : "gp", before)) << "trial " << trial;
    EXPECT_NE(all.trials[trial], next_of(second ? "gp" : "tpe", before)) << "trial " << trial;
  }
}

TEST(Portfolio, OfThirtyAtOnceTheTurnsAreTheSame) {
  History history = search_of(12);
  const Suggestion thirty = sampler_of("portfolio")->suggest(history, 30);
  for (const Json& point : thirty.points) {
    EXPECT_EQ(point, next_of(history.trials.size() % 3 == 2 ? "tpe" : "gp", history));
    history.trials.push_back(point);
  }
}

TEST(Portfolio, SaysWhoChose) {
  const auto sampler = sampler_of("portfolio");
  EXPECT_THAT(sampler->description(), StartsWith("portfolio of gp ("));
  EXPECT_THAT(sampler->description(), HasSubstr("each third trial, tpe ("));
  const Json point = search_of(1).trials[0];
  EXPECT_THAT(sampler->explain(search_of(12), point)->words, StartsWith("gp: "));
  EXPECT_THAT(sampler->explain(search_of(14), point)->words, StartsWith("tpe: "));
}

}  // namespace
}  // namespace fettle::search
