// Laws of every sampler, for any space and history.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "api/fields/enum_names.h"
#include "api/trial/trial.h"
#include "search/search.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

std::unique_ptr<Sampler> sampler_of(const Problem& problem) {
  Result<std::unique_ptr<Sampler>> out = make_sampler(problem);
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
  return std::move(out).value();
}

std::string error_of(const Problem& problem) {
  const auto out = make_sampler(problem);
  return out.ok() ? "" : out.error().message;
}

std::vector<std::string> texts(const Suggestion& suggestion) {
  std::vector<std::string> out;
  for (const Json& point : suggestion.points) out.push_back(point.dump());
  return out;
}

// A cost is any number from 0, or unknown.
std::optional<double> random_cost(Random& random) {
  static constexpr double kCosts[] = {0, 1, 5e-324, 1e300};
  const std::uint64_t kind = random.below(8);
  if (kind == 0) return std::nullopt;
  if (kind == 1) return kCosts[random.below(std::size(kCosts))];
  return std::exp(2 * random.normal());
}

// An arbitrary fact about a trial: out of order, repeated, or absurdly large.
Event random_event(Random& random, std::int64_t trials) {
  const auto trial = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(trials)));
  static constexpr double kValues[] = {0, 1, -1, 1e300, -1e300, 5e-324};
  std::optional<double> value = random.normal();
  const std::uint64_t kind = random.below(8);
  if (kind == 0) value = kValues[random.below(std::size(kValues))];
  if (kind == 1) value.reset();
  const auto step = static_cast<std::int64_t>(random.below(10));
  if (kind == 2) return fact(trial, api::FactKind::kStopped, step, value);
  if (kind == 3) return fact(trial, api::FactKind::kFailed, step, std::nullopt);
  if (kind == 4) return fact(trial, api::FactKind::kRung, step, value);
  return result(trial, value);
}

class EverySampler : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Samplers, EverySampler, ::testing::ValuesIn(samplers_in_every_mode()),
                         [](const auto& test) { return test.param; });

// The cache of a sampler that saw the history grow must never show in its suggestions.
TEST_P(EverySampler, IsAPureFunctionOfTheHistory) {
  Random random(21);
  for (int study = 0; study < 30; ++study) {
    Problem problem = problem_of(random_space(random, 6, random.below(3) == 0), GetParam(), study);
    if (random.below(4) == 0) problem.objectives.push_back(problem.objectives[0]);
    if (problem.algorithm.cost_aware && study % 2 == 0) problem.max_trials = 60;
    if (problem.algorithm.cost_aware && study % 3 == 0) problem.max_cost = 100;
    problem.algorithm.startup_trials = static_cast<std::int64_t>(random.below(6));
    const auto cached = sampler_of(problem);
    History history;
    for (int move = 0; move < 25; ++move) {
      const auto n = static_cast<std::int64_t>(random.below(4)) + 1;
      const Suggestion at_once = cached->suggest(history, n);
      ASSERT_EQ(texts(at_once), texts(sampler_of(problem)->suggest(history, n)));
      History growing = history;
      for (const Json& point : at_once.points) {
        ASSERT_EQ(complaint(problem.parameters, point), "") << point.dump();
        const Suggestion next = cached->suggest(growing, 1);
        ASSERT_EQ(texts(next), std::vector<std::string>{point.dump()});
        growing.trials.push_back(point);
      }
      ASSERT_EQ(cached->suggest(growing, 1).exhausted,
                sampler_of(problem)->suggest(growing, 1).exhausted);
      if (random.below(3) > 0) history = growing;
      if (history.trials.empty()) continue;
      for (std::uint64_t told = random.below(5); told > 0; --told) {
        Event event = random_event(random, static_cast<std::int64_t>(history.trials.size()));
        event.fact.values.resize(problem.objectives.size(), 0.5);
        event.fact.cost = random_cost(random);
        history.events.push_back(event);
      }
    }
  }
}

TEST_P(EverySampler, TriesEachPointOfAFiniteSpaceOnceAndEnds) {
  if (testing::is_population(GetParam())) GTEST_SKIP() << "members may begin alike";
  Random random(22);
  for (int study = 0; study < 60; ++study) {
    const std::vector<api::Parameter> parameters = random_space(random, 4, true);
    const std::size_t size = enumerate(parameters).size();
    if (size > 200) continue;
    Problem problem = problem_of(parameters, GetParam(), study);
    const auto sampler = sampler_of(problem);
    History history;
    std::set<std::string> seen;
    while (seen.size() < size) {
      const Suggestion suggestion = sampler->suggest(history, 1);
      ASSERT_EQ(suggestion.points.size(), 1U) << seen.size() << " of " << size;
      ASSERT_FALSE(suggestion.exhausted);
      ASSERT_TRUE(seen.insert(suggestion.points[0].dump()).second) << suggestion.points[0].dump();
      history.trials.push_back(suggestion.points[0]);
      const auto trial = static_cast<std::int64_t>(history.trials.size()) - 1;
      if (random.below(4) == 0) continue;
      history.events.push_back(result(trial, random.normal()));
      history.events.back().fact.cost = random_cost(random);
    }
    EXPECT_TRUE(sampler->suggest(history, 3).points.empty());
    EXPECT_TRUE(sampler->suggest(history, 3).exhausted);
  }
}

TEST_P(EverySampler, AskingForTooManyPointsReturnsTheRest) {
  if (testing::is_population(GetParam())) GTEST_SKIP() << "members may begin alike";
  const Problem problem = problem_of({boolean("a"), integer("b", 1, 3)}, GetParam());
  const Suggestion suggestion = sampler_of(problem)->suggest({}, 100);
  EXPECT_EQ(suggestion.points.size(), 6U);
  EXPECT_TRUE(suggestion.exhausted);
  EXPECT_EQ(sampler_of(problem)->suggest({}, 6).exhausted, false);
  EXPECT_TRUE(sampler_of(problem)->suggest({}, 0).points.empty());
}

TEST_P(EverySampler, NoTwoPointsAreTheSame) {
  const Problem problem =
      problem_of({real("x", 0, 1), integer("n", 1, 3), boolean("b")}, GetParam());
  const auto sampler = sampler_of(problem);
  for (const bool told : {false, true}) {
    History history;
    std::set<std::string> seen;
    const bool models = GetParam() == "gp" || GetParam() == "ehvi" || GetParam() == "portfolio" ||
                        GetParam() == "auto" || GetParam() == "gp_cost";  // milliseconds each
    const bool few = GetParam() == "grid" || GetParam() == "bohb";  // a new model for each point
    const std::size_t trials = few ? 60 : (models ? (kSanitized ? 40 : 150) : 1000);
    while (history.trials.size() < trials) {
      const Json point = sampler->suggest(history, 1).points.at(0);
      EXPECT_TRUE(seen.insert(point.dump()).second);
      const auto trial = static_cast<std::int64_t>(history.trials.size());
      history.trials.push_back(point);
      if (!told) continue;
      history.events.push_back(result(trial, point.find("x")->as_double()));
      history.events.back().fact.cost = 1 + point.find("x")->as_double();
    }
  }
}

TEST_P(EverySampler, CopesWithAnyOutcome) {
  const std::vector<std::optional<double>> outcomes = {0.0, std::nullopt, 1e300, -1e300};
  const Problem problem = problem_of({real("x", 0, 1), choice("c", {"a", "b"})}, GetParam());
  for (const std::optional<double>& outcome : outcomes) {
    const auto sampler = sampler_of(problem);
    History history;
    for (std::int64_t trial = 0; trial < 20; ++trial) {
      const Suggestion suggestion = sampler->suggest(history, 1);
      ASSERT_EQ(complaint(problem.parameters, suggestion.points.at(0)), "");
      history.trials.push_back(suggestion.points[0]);
      history.events.push_back(result(trial, outcome));
    }
  }
}

TEST_P(EverySampler, PassesOverTrialsOfAnotherSpace) {
  if (testing::is_population(GetParam())) GTEST_SKIP() << "members may begin alike";
  const Problem problem = problem_of({boolean("a"), boolean("b")}, GetParam());
  History history;
  history.trials = {*parse_json(R"({"x":1})"), *parse_json(R"({"a":true,"b":1.5})"),
                    *parse_json(R"({"b":true,"a":false})")};  // only the last one is in this space
  history.events = {result(0, 1.0), result(2, 2.0)};
  const Suggestion suggestion = sampler_of(problem)->suggest(history, 4);
  EXPECT_EQ(suggestion.points.size(), 3U);
  EXPECT_TRUE(suggestion.exhausted);
  EXPECT_THAT(texts(suggestion), ::testing::Not(::testing::Contains(R"({"a":false,"b":true})")));
}

TEST_P(EverySampler, GoesOnUnderAnotherSeed) {
  if (testing::is_population(GetParam())) GTEST_SKIP() << "members may begin alike";
  Problem problem = problem_of({integer("n", 1, 30), boolean("b")}, GetParam());
  History history;
  for (std::int64_t trial = 0; trial < 60; ++trial) {
    problem.algorithm.seed = trial / 20;
    const Suggestion next = sampler_of(problem)->suggest(history, 1);
    ASSERT_EQ(next.points.size(), 1U);
    EXPECT_THAT(texts({history.trials, false}),
                ::testing::Not(::testing::Contains(next.points[0].dump())));
    history.trials.push_back(next.points[0]);
    history.events.push_back(result(trial, static_cast<double>(trial % 5)));
  }
  EXPECT_TRUE(sampler_of(problem)->suggest(history, 1).exhausted);
}

// About 10^5 spaces over all samplers.
TEST_P(EverySampler, StaysInBoundsInRandomSpaces) {
  const std::size_t spaces = (kSanitized ? 5'000 : 100'000) / searching_samplers().size();
  Random random(23);
  for (std::size_t i = 0; i < spaces; ++i) {
    const Problem problem =
        problem_of(random_space(random, 8, false), GetParam(), static_cast<std::int64_t>(i));
    for (const Json& point : sampler_of(problem)->suggest({}, 2).points) {
      ASSERT_EQ(complaint(problem.parameters, point), "") << point.dump();
    }
  }
}

TEST_P(EverySampler, AShorterHistoryIsReadAnew) {
  const Problem problem = problem_of({real("x", 0, 1), boolean("b")}, GetParam());
  const auto sampler = sampler_of(problem);
  History history;
  history.trials = sampler->suggest({}, 12).points;
  for (std::int64_t trial = 0; trial < 12; ++trial) history.events.push_back(result(trial, 1.0));
  sampler->suggest(history, 1);
  EXPECT_EQ(texts(sampler->suggest({}, 3)), texts(sampler_of(problem)->suggest({}, 3)));
}

TEST(Samplers, SeedsMatterButForAGridInOrder) {
  for (const std::string& name : searching_samplers()) {
    Problem problem = problem_of({real("x", 0, 1), real("y", 0, 1)}, name, 1);
    const std::vector<std::string> first = texts(sampler_of(problem)->suggest({}, 5));
    problem.algorithm.seed = -2;
    EXPECT_EQ(first == texts(sampler_of(problem)->suggest({}, 5)), name == "grid") << name;
  }
}

// Pearson's chi-square statistic of `counts` against equal shares.
double chi_square(const std::map<int, int>& counts, int cells, int total) {
  const double expected = static_cast<double>(total) / cells;
  double out = expected * (cells - static_cast<double>(counts.size()));
  for (const auto& [cell, count] : counts) out += std::pow(count - expected, 2) / expected;
  return out;
}

TEST(RandomSampler, DrawsUniformlyOnEveryScale) {
  const Problem problem = problem_of(
      {real("x", -1, 3), real("lr", 1e-8, 1, api::Scale::kLog), integer("n", 1, 16),
       choice("c", {"a", "b", "c", "d"}), boolean("b"), integer("k", 1, 15, api::Scale::kLog)},
      "random");
  constexpr int kTrials = 16000;
  const Suggestion suggestion = sampler_of(problem)->suggest({}, kTrials);
  const auto cell_of = [](const Json& point, const std::string& name) {
    const Json& value = *point.find(name);
    if (name == "x") return static_cast<int>((value.as_double() + 1) * 4);
    if (name == "lr") return static_cast<int>(std::floor(std::log10(value.as_double()) * 2));
    if (name == "n") return static_cast<int>(value.as_integer());
    if (name == "c") return static_cast<int>(value.as_string()[0]);
    if (name == "b") return static_cast<int>(value.as_boolean());
    // Rounded to integers from [0.5, 15.5): 1 and 2 take up nearly half of the logarithmic scale.
    return value.as_integer() <= 2 ? 0 : 1;
  };
  const double low_share = std::log(2.5 / 0.5) / std::log(15.5 / 0.5);
  for (const auto& [name, cells, limit] :
       {std::tuple{"x", 16, 37.7}, std::tuple{"lr", 16, 37.7}, std::tuple{"n", 16, 37.7},
        std::tuple{"c", 4, 16.3}, std::tuple{"b", 2, 10.8}}) {
    std::map<int, int> counts;
    for (const Json& point : suggestion.points) ++counts[cell_of(point, name)];
    EXPECT_LT(chi_square(counts, cells, kTrials), limit) << name;  // exceeded once in a thousand
  }
  int low = 0;
  for (const Json& point : suggestion.points) low += cell_of(point, "k") == 0;
  EXPECT_NEAR(low, low_share * kTrials, 4 * std::sqrt(kTrials * low_share * (1 - low_share)));
}

TEST(RandomSampler, BranchesAreEquallyProbableForAnyChildren) {
  const Problem problem = problem_of(
      {choice("o", {"a", "b"}), only_if(integer("n", 1, 1'000'000), "o", {"a"})}, "random");
  int long_branch = 0;
  for (std::int64_t seed = 0; seed < 400; ++seed) {
    Problem other = problem;
    other.algorithm.seed = seed;
    const Suggestion first = sampler_of(other)->suggest({}, 1);
    long_branch += first.points[0].find("n") != nullptr;
  }
  EXPECT_NEAR(long_branch, 200, 40);
}

TEST(GridSampler, VisitsPointsInOrder) {
  Problem problem = problem_of(
      {choice("o", {"sgd", "adam"}), only_if(real("m", 0, 1), "o", {"sgd"}), boolean("b")}, "grid");
  problem.algorithm.points = 2;
  EXPECT_THAT(
      texts(sampler_of(problem)->suggest({}, 10)),
      ::testing::ElementsAre(R"({"o":"sgd","m":0,"b":false})", R"({"o":"sgd","m":0,"b":true})",
                             R"({"o":"sgd","m":1,"b":false})", R"({"o":"sgd","m":1,"b":true})",
                             R"({"o":"adam","b":false})", R"({"o":"adam","b":true})"));
}

TEST(GridSampler, ShufflesByTheSeed) {
  Problem problem = problem_of({integer("n", 0, 99)}, "grid", 1);
  const std::vector<std::string> in_order = texts(sampler_of(problem)->suggest({}, 101));
  problem.algorithm.shuffle = true;
  const std::vector<std::string> first = texts(sampler_of(problem)->suggest({}, 101));
  problem.algorithm.seed = 2;
  const std::vector<std::string> second = texts(sampler_of(problem)->suggest({}, 101));
  EXPECT_NE(first, in_order);
  EXPECT_NE(first, second);
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(in_order));
  EXPECT_THAT(second, ::testing::UnorderedElementsAreArray(in_order));
}

TEST(GridSampler, AGridOfABillionIsNeverListed) {
  std::vector<api::Parameter> parameters;
  for (int i = 0; i < 9; ++i) parameters.push_back(real("p" + std::to_string(i), 0, 9));
  for (const int more : {0, 100}) {
    for (int i = 0; i < more; ++i) parameters.push_back(real("q" + std::to_string(i), 0, 9));
    for (const bool shuffle : {false, true}) {
      Problem problem = problem_of(parameters, "grid");
      problem.algorithm.shuffle = shuffle;
      const Suggestion suggestion = sampler_of(problem)->suggest({}, 100);
      const std::vector<std::string> points = texts(suggestion);
      EXPECT_EQ(std::set<std::string>(points.begin(), points.end()).size(), 100U);
    }
  }
}

TEST(AutoSampler, ChoosesAndSaysWhy) {
  Problem problem = problem_of({integer("n", 1, 20)}, "auto");
  problem.max_trials = 20;
  EXPECT_EQ(sampler_of(problem)->description(),
            "auto: grid in random order of 20 points, because the budget of 20 trials covers all "
            "of them");
  problem.max_trials = 19;
  EXPECT_EQ(
      sampler_of(problem)->description(),
      "auto: portfolio of gp (Matern-5/2, log expected improvement, 4 startup trials) and tpe's "
      "opinion, because it needs the fewest trials for 1 parameter and a budget of 19 trials");
  problem.parallelism = 10;
  EXPECT_THAT(sampler_of(problem)->description(), HasSubstr("sobol"));
  EXPECT_THAT(sampler_of(problem)->description(), HasSubstr("10 of 19 trials run at once"));
  problem.parallelism = 9;
  EXPECT_THAT(sampler_of(problem)->description(), HasSubstr("auto: portfolio of gp ("));
  problem.objectives.push_back(problem.objectives[0]);
  EXPECT_THAT(sampler_of(problem)->description(), HasSubstr("auto: ehvi"));
  EXPECT_THAT(sampler_of(problem)->description(), HasSubstr("for 1 parameter, 2 objectives and"));
  problem.objectives.resize(4, problem.objectives[0]);
  EXPECT_THAT(sampler_of(problem)->description(),
              HasSubstr("because 4 objectives are more than the 3 that ehvi takes"));
  problem.objectives.resize(1);
  problem.max_trials = 0;
  EXPECT_THAT(sampler_of(problem)->description(), ::testing::EndsWith("trials for 1 parameter"));
  problem.parameters = {real("x", 0, 1)};
  problem.max_trials = 5000;
  EXPECT_THAT(sampler_of(problem)->description(),
              HasSubstr("because 5000 trials are more than the 2000"));
  problem.max_trials = 100;
  for (int i = 0; i < 50; ++i) problem.parameters.push_back(real("p" + std::to_string(i), 0, 1));
  EXPECT_THAT(sampler_of(problem)->description(), HasSubstr("because 51 parameters are more than"));
}

TEST(Samplers, InvalidSpacesAreRefused) {
  const std::vector<api::Parameter> x = {real("x", 0, 1)};
  std::vector<api::Parameter> many;
  for (int i = 0; i < 3668; ++i) many.push_back(boolean("p" + std::to_string(i)));
  EXPECT_THAT(error_of(problem_of(many, "sobol")), HasSubstr("1 to 3667 parameters; found 3668"));
  EXPECT_EQ(error_of(problem_of(many, "tpe")), "");
  Problem of_four = problem_of(x, "ehvi");
  of_four.objectives.resize(4, of_four.objectives[0]);
  EXPECT_EQ(error_of(of_four),
            "ehvi takes up to 3 objectives; found 4; nsga2 and tpe take any number");
  EXPECT_THAT(error_of(problem_of({real("x", 1, 0)}, "random")), HasSubstr("above the upper"));

  const std::vector<std::tuple<std::string, std::function<void(api::Algorithm&)>, std::string>>
      settings = {
          {"grid", [](api::Algorithm& a) { a.points = 1; }, "2 to 1000000 points"},
          {"tpe", [](api::Algorithm& a) { a.candidates = 0; }, "1 to 100000 candidates; found 0"},
          {"tpe", [](api::Algorithm& a) { a.startup_trials = -1; }, "0 or more startup trials"},
          {"gp", [](api::Algorithm& a) { a.candidates = 0; }, "1 to 100000 candidates; found 0"},
          {"gp", [](api::Algorithm& a) { a.startup_trials = -1; }, "0 or more startup trials"},
          {"cmaes", [](api::Algorithm& a) { a.population_size = 3; }, "4 to 1000; found 3"},
          {"nsga2", [](api::Algorithm& a) { a.population_size = 1001; }, "4 to 1000; found 1001"}};
  for (const auto& [name, change, expected] : settings) {
    Problem problem = problem_of(x, name);
    change(problem.algorithm);
    EXPECT_THAT(error_of(problem), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace fettle::search
