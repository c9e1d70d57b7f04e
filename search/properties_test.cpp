// Laws of every sampler on very many random spaces and on extreme spaces. The laws of histories
// (pure, no repeats, exhaustion) are in samplers_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "search/search.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

// The number of random spaces for each sampler: 100,000 for samplers that only draw or count, fewer
// for samplers with a costly model, so that a test takes a few seconds.
int random_spaces(const std::string& name) {
  static const std::map<std::string, int> kSpaces = {
      {"random", 100'000}, {"sobol", 100'000}, {"grid", 100'000}, {"nsga2", 100'000},
      {"cmaes", 20'000},   {"pbt", 20'000},    {"auto", 10'000},  {"tpe", 10'000}};
  const auto known = kSpaces.find(name);
  const int spaces = known == kSpaces.end() ? 300 : known->second;
  return kSanitized ? spaces / 20 : spaces;
}

// Lets models start after few trials, so that short histories reach them.
Problem eager(Problem problem) {
  const api::AlgorithmKind name = problem.algorithm.name;
  const bool fits = name == api::AlgorithmKind::kTpe || name == api::AlgorithmKind::kAuto;
  if (fits) problem.algorithm.startup_trials = 4;
  if (api::traits(name).breeds) problem.algorithm.population_size = 4;
  return problem;
}

std::unique_ptr<Sampler> sampler_of(const Problem& problem) {
  Result<std::unique_ptr<Sampler>> out = make_sampler(problem);
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
  return std::move(out).value();
}

// Runs trials one after another, three of them pending, with values from `value`; checks that all
// points are valid.
void search(const Problem& problem, std::int64_t trials,
            const std::function<std::optional<double>(std::int64_t)>& value) {
  constexpr std::int64_t kPending = 3;
  const auto sampler = sampler_of(problem);
  History history;
  for (std::int64_t trial = 0; trial < trials; ++trial) {
    const Suggestion next = sampler->suggest(history, 1);
    ASSERT_EQ(next.points.empty(), next.exhausted);
    if (next.exhausted) return;
    ASSERT_EQ(complaint(problem.parameters, next.points[0]), "") << next.points[0].dump();
    history.trials.push_back(next.points[0]);
    if (trial < kPending) continue;
    history.events.push_back(result(trial - kPending, value(trial - kPending)));
    history.events.back().fact.cost = static_cast<double>(trial * trial % 7);
  }
}

class EverySampler : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Properties, EverySampler, ::testing::ValuesIn(samplers_in_every_mode()),
                         [](const auto& test) { return test.param; });

TEST_P(EverySampler, SuggestsValidPointsInRandomSpaces) {
  Random random(31);
  const int spaces = random_spaces(GetParam());
  for (int i = 0; i < spaces && !HasFailure(); ++i) {
    const std::vector<api::Parameter> parameters = random_space(random, 8, random.below(4) == 0);
    SCOPED_TRACE("space " + std::to_string(i));
    search(eager(problem_of(parameters, GetParam(), i)), 9, [&](std::int64_t) {
      return random.below(5) == 0 ? std::nullopt : std::optional(random.normal());
    });
  }
}

TEST_P(EverySampler, TakesRangesOfOnePoint) {
  if (testing::is_population(GetParam())) GTEST_SKIP() << "members may begin alike";
  const Problem problem = eager(
      problem_of({real("x", 2.5, 2.5), real("l", 1e-3, 1e-3, api::Scale::kLog), integer("n", 7, 7),
                  integer("k", 3, 3, api::Scale::kLog), choice("c", {"only"}),
                  stepped("s", 1, 1.4, 0.5), only_if(real("y", -1, -1), "c", {"only"})},
                 GetParam()));
  const Suggestion all = sampler_of(problem)->suggest({}, 3);
  ASSERT_EQ(all.points.size(), 1U);
  EXPECT_EQ(complaint(problem.parameters, all.points[0]), "");
  EXPECT_TRUE(all.exhausted);

  Problem beside = problem;
  beside.parameters.push_back(real("free", 0, 1));
  search(beside, 20, [](std::int64_t trial) { return static_cast<double>(trial); });
}

TEST_P(EverySampler, TakesScalesOfThirtyDecades) {
  const Problem problem = eager(problem_of(
      {real("x", 1e-15, 1e15, api::Scale::kLog), real("tiny", 1e-300, 1e-270, api::Scale::kLog),
       integer("n", 1, 9e15, api::Scale::kLog), real("wide", -1e300, 1e300)},
      GetParam()));
  search(problem, 40, [](std::int64_t trial) { return std::cos(static_cast<double>(trial)); });
}

TEST_P(EverySampler, TakesFiveHundredParameters) {
  std::vector<api::Parameter> parameters;
  for (int i = 0; i < 500; ++i) {
    const std::string name = "p" + std::to_string(i);
    if (i % 5 == 0) parameters.push_back(boolean(name));
    if (i % 5 == 1) parameters.push_back(real(name, 0, 1));
    if (i % 5 == 2) parameters.push_back(integer(name, 1, 100, api::Scale::kLog));
    if (i % 5 == 3) parameters.push_back(choice(name, {"a", "b", "c"}));
    if (i % 5 == 4) {
      parameters.push_back(only_if(real(name, 0, 1), "p" + std::to_string(i - 4), {Json(true)}));
    }
  }
  search(eager(problem_of(parameters, GetParam())), 12,
         [](std::int64_t trial) { return static_cast<double>(trial % 4); });
}

TEST_P(EverySampler, TakesTenThousandChoices) {
  std::vector<Json> values;
  for (int i = 0; i < 10'000; ++i) values.emplace_back("v" + std::to_string(i));
  search(eager(problem_of({choice("c", values), real("x", 0, 1)}, GetParam())), 30,
         [](std::int64_t trial) { return static_cast<double>(trial % 7); });
}

TEST_P(EverySampler, BearsWithOutliers) {
  const Problem problem =
      eager(problem_of({real("x", 0, 1), integer("n", 1, 9), boolean("b")}, GetParam()));
  static constexpr double kValues[] = {1, 2, 1e12, 3, -1e12, 1e300, 4, -1e300, 5e-324, 5};
  search(problem, 60, [](std::int64_t trial) {
    return kValues[static_cast<std::size_t>(trial) % std::size(kValues)];
  });
}

// Replicates repeat points; each counts as a trial, and as a point only once.
TEST_P(EverySampler, GoesOnAfterPointsThatWereRepeated) {
  if (testing::is_population(GetParam())) GTEST_SKIP() << "members may begin alike";
  for (const bool finite : {true, false}) {
    const Problem problem = eager(
        problem_of({boolean("a"), finite ? integer("n", 1, 4) : real("n", 1, 4)}, GetParam()));
    const auto kept = sampler_of(problem);
    History history;
    const auto add = [&history](const Json& point, double value) {
      history.trials.push_back(point);
      history.events.push_back(result(std::ssize(history.trials) - 1, value));
    };
    for (int trial = 0; trial < 5; ++trial) {
      add(kept->suggest(history, 1).points.at(0), static_cast<double>(trial));
    }
    // The same value each time, as where a program fixes its seed; or noise.
    for (int run = 0; run < 12; ++run) {
      add(history.trials[static_cast<std::size_t>(run % 2)], finite ? 0 : std::cos(run));
    }
    const Suggestion next = kept->suggest(history, 10);
    EXPECT_EQ(next.points, sampler_of(problem)->suggest(history, 10).points);
    EXPECT_EQ(next.points.size(), finite ? 3U : 10U);
    EXPECT_EQ(next.exhausted, finite);
    std::set<std::string> seen;
    for (const Json& point : history.trials) seen.insert(point.dump());
    for (const Json& point : next.points) {
      EXPECT_EQ(complaint(problem.parameters, point), "");
      EXPECT_TRUE(seen.insert(point.dump()).second) << point.dump() << " was tried";
    }
  }
}

// Trials of another seed, or of a Study that the user changed meanwhile, are history like any
// other.
TEST_P(EverySampler, ContinuesTheSearchOfAnotherSeed) {
  if (testing::is_population(GetParam())) GTEST_SKIP() << "members may begin alike";
  Problem problem = eager(problem_of({boolean("a"), integer("n", 1, 4)}, GetParam(), 1));
  History history;
  history.trials = sampler_of(problem)->suggest({}, 5).points;
  for (std::int64_t trial = 0; trial < 5; ++trial) {
    history.events.push_back(result(trial, static_cast<double>(trial)));
  }
  problem.algorithm.seed = 2;
  const Suggestion rest = sampler_of(problem)->suggest(history, 10);
  std::set<std::string> seen;
  for (const Json& point : history.trials) seen.insert(point.dump());
  for (const Json& point : rest.points) seen.insert(point.dump());
  EXPECT_EQ(seen.size(), 8U);
  EXPECT_TRUE(rest.exhausted);
}

// Pearson's chi-square statistic of counts against equal shares.
double chi_square(const std::map<std::string, int>& counts, std::size_t cells, double total) {
  const double expected = total / static_cast<double>(cells);
  double out = expected * static_cast<double>(cells - counts.size());
  for (const auto& [cell, count] : counts) out += std::pow(count - expected, 2) / expected;
  return out;
}

// Quasi-random points fill cells more evenly than random draws and random orders do.
TEST(Uniformity, HoldsAlongEveryParameterAlsoWithinBranches) {
  const std::vector<api::Parameter> parameters = {
      choice("c", {"a", "b", "c", "d"}), only_if(integer("n", 1, 8), "c", {"b"}),
      only_if(real("x", 1e-4, 1, api::Scale::kLog), "c", {"c"}), real("free", 0, 1)};
  for (const std::string name : {"random", "sobol"}) {
    const Suggestion all = sampler_of(problem_of(parameters, name))->suggest({}, 16'000);
    std::map<std::string, int> choices;
    std::map<std::string, int> integers;
    std::map<std::string, int> decades;
    for (const Json& point : all.points) {
      ++choices[point.find("c")->as_string()];
      if (const Json* n = point.find("n")) ++integers[n->dump()];
      if (const Json* x = point.find("x")) {
        ++decades[std::to_string(std::floor(2 * std::log10(x->as_double())))];
      }
    }
    EXPECT_LT(chi_square(choices, 4, 16'000), 16.3) << name;  // exceeded once in a thousand
    EXPECT_LT(chi_square(integers, 8, choices["b"]), 24.3) << name;
    EXPECT_LT(chi_square(decades, 8, choices["c"]), 24.3) << name;
  }
}

TEST(Uniformity, AShuffledGridBeginsAnywhere) {
  std::map<std::string, int> first;
  for (std::int64_t seed = 0; seed < 4000; ++seed) {
    Problem problem = problem_of({integer("n", 1, 10)}, "grid", seed);
    problem.algorithm.shuffle = true;
    ++first[sampler_of(problem)->suggest({}, 1).points[0].dump()];
  }
  EXPECT_LT(chi_square(first, 10, 4000), 27.9);
}

}  // namespace
}  // namespace fettle::search
