// TpePrior: the time at which it counts, its slopes, and the portfolio's sum of the gp and tpe
// terms.
#include "search/gp/tpe_prior.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "search/search.h"
#include "search/testing/gaussian_process.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Space square() {
  return std::move(Space::make({real("x", 0, 1), real("y", 0, 1), choice("kind", {"a", "b"})}))
      .value();
}

double bowl(double x, double y) { return std::pow(x - 0.3, 2) + std::pow(y - 0.6, 2); }

// A TpePrior after `ended` results at random points and `pending` more points.
gp::TpePrior tpe_prior_after(const Space& space, std::int64_t ended, std::int64_t pending,
                             bool wanted = true) {
  gp::TpePrior out(space, {api::Objective{}}, wanted);
  Random random(9);
  for (std::int64_t trial = 0; trial < ended + pending; ++trial) {
    const Point point = space.draw(random);
    out.add_trial(&point);
    if (trial < ended) out.add_event(result(trial, bowl(point[0], point[1])));
  }
  out.update(ended + pending);
  return out;
}

TEST(TpePrior, CountsOnceItKnowsEnoughAndThenEverLess) {
  const Space space = square();
  EXPECT_FALSE(tpe_prior_after(space, 9, 0).counts());
  EXPECT_FALSE(tpe_prior_after(space, 3, 20).counts());
  EXPECT_FALSE(tpe_prior_after(space, 20, 0, false).counts()) << "none is wanted";
  for (const auto& [ended, pending, words] : {std::tuple(10, 0, "1 times the log"),
                                              {4, 6, "1 times the log"},
                                              {20, 0, "1 times the log"},
                                              {40, 0, "0.5 times the log"},
                                              {30, 50, "0.25 times the log"},
                                              {200, 0, "0.1 times the log"}}) {
    const gp::TpePrior tpe_prior = tpe_prior_after(space, ended, pending);
    EXPECT_TRUE(tpe_prior.counts());
    EXPECT_THAT(tpe_prior.words(), StartsWith(words));
  }
  EXPECT_FALSE(tpe_prior_after(space, 201, 0).counts());
}

TEST(TpePrior, SlopesMatchFiniteDifferences) {
  const Space space = square();
  const gp::TpePrior tpe_prior = tpe_prior_after(space, 24, 8);
  gp::Inputs inputs(1, 3);
  const auto at = [&](const Eigen::VectorXd& x) { return tpe_prior.at(Point{x[0], x[1], 1}); };
  Random random(3);
  for (int i = 0; i < 20; ++i) {
    const Eigen::VectorXd x = Eigen::Vector2d(random.uniform(), random.uniform());
    const Eigen::VectorXd expected = gp::testing::differences(at, x);
    inputs.set(0, space, {x[0], x[1], 1});
    Eigen::VectorXd slope;
    EXPECT_DOUBLE_EQ(tpe_prior.at(inputs, 0, slope), at(x));
    EXPECT_NEAR(slope[0], expected[0], 1e-4);
    EXPECT_NEAR(slope[1], expected[1], 1e-4);
    EXPECT_EQ(slope[2], 0) << "of a choice";
  }
}

TEST(TpePrior, CandidatesAndPointsHaveEqualValues) {
  const Space space = gp::testing::mixed_space();
  Random random(4);
  gp::TpePrior mixed(space, {api::Objective{}}, true);
  for (std::int64_t trial = 0; trial < 30; ++trial) {
    const Point point = space.draw(random);
    mixed.add_trial(&point);
    if (trial < 25) mixed.add_event(result(trial, random.uniform()));
  }
  mixed.update(30);
  std::vector<gp::Candidate> candidates;
  for (const Point& point : mixed.draws(50, random)) {
    candidates.push_back(
        gp::candidate_of(space, point, std::vector<double>(space.dimensions(), 0.5)));
  }
  mixed.set_candidates(candidates);
  gp::Inputs inputs(1, static_cast<gp::Index>(space.dimensions()));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double expected = mixed.at(candidates[i].point);
    EXPECT_NEAR(mixed.at_candidate(static_cast<gp::Index>(i)), expected, 1e-12);
    inputs.set(0, space, candidates[i].point);
    Eigen::VectorXd slope;
    EXPECT_NEAR(mixed.at(inputs, 0, slope), expected, 1e-12);
  }
}

// ---- The portfolio -----------------------------------------------------------------------------

Problem problem_with(const std::string& algorithm) {
  return problem_of({real("x", 0, 1), real("y", 0, 1), choice("kind", {"a", "b"})}, algorithm, 3);
}

std::unique_ptr<Sampler> sampler_of(const std::string& algorithm) {
  return std::move(make_sampler(problem_with(algorithm))).value();
}

// The history of a portfolio search with `pending` trials at once.
History search_of(std::size_t trials, std::size_t pending) {
  const auto sampler = sampler_of("portfolio");
  History out;
  while (out.trials.size() < trials) {
    out.trials.push_back(sampler->suggest(out, 1).points.at(0));
    if (out.trials.size() <= pending) continue;
    const std::size_t ended = out.events.size();
    const Json& point = out.trials[ended];
    const double x = point.find("x")->as_double();
    const double y = point.find("y")->as_double();
    out.events.push_back(result(static_cast<std::int64_t>(ended), bowl(x, y) + 0.1 * x * y));
  }
  return out;
}

double worth(const std::string& algorithm, const History& history, const Json& point) {
  return *sampler_of(algorithm)->explain(history, point)->acquisition;
}

TEST(Portfolio, TheAcquisitionIsTheSumOfBothModels) {
  Random random(6);
  const Space space = square();
  for (const std::size_t pending : {0, 6}) {
    const History history = search_of(20, pending);
    for (int i = 0; i < 10; ++i) {
      const Json point = space.write(space.draw(random));
      EXPECT_NEAR(worth("portfolio", history, point),
                  worth("gp", history, point) + worth("tpe", history, point), 1e-9);
    }
    const auto words = [&](const char* algorithm) {
      return sampler_of(algorithm)->explain(history, history.trials[0])->words;
    };
    EXPECT_THAT(words("portfolio"), HasSubstr(", plus 1 times the logarithm of how much denser"));
    EXPECT_THAT(words("gp"), Not(HasSubstr("denser")));
  }
}

TEST(Portfolio, ChoosesAHigherSumThanEitherModel) {
  for (const std::size_t pending : {0, 6}) {
    const History all = search_of(22, pending);
    int better = 0;
    for (std::size_t trial = 11; trial < all.trials.size(); ++trial) {
      History before = all;
      before.trials.resize(trial);
      before.events.resize(trial - pending);
      const double chosen = worth("portfolio", before, all.trials[trial]);
      for (const char* algorithm : {"gp", "tpe"}) {
        const Json point = sampler_of(algorithm)->suggest(before, 1).points.at(0);
        const double other = worth("portfolio", before, point);
        EXPECT_GT(chosen, other - 0.5) << algorithm << " at " << trial;
        better += chosen > other + 0.1;
      }
    }
    EXPECT_GT(better, 11) << "half of the time by a tenth";
  }
}

// No trial ends meanwhile, so no model is fitted again.
TEST(Portfolio, IsTheSameAfterARestartWhereTheOpinionBeginsAndCeasesToCount) {
  std::vector<std::size_t> firsts = {6};
  if (!kSanitized) firsts.push_back(196);
  for (const std::size_t first : firsts) {
    const auto sampler = sampler_of("portfolio");
    History history = search_of(first, 0);
    for (int i = 0; i < 9; ++i) {
      const Json point = sampler->suggest(history, 1).points.at(0);
      EXPECT_EQ(point.dump(), sampler_of("portfolio")->suggest(history, 1).points.at(0).dump())
          << "at " << history.trials.size();
      history.trials.push_back(point);
    }
  }
}

TEST(Portfolio, DescribesItself) {
  EXPECT_EQ(sampler_of("portfolio")->description(),
            "portfolio of gp (Matern-5/2, log expected improvement, 10 startup trials) and tpe's "
            "opinion");
}

}  // namespace
}  // namespace fettle::search
