// Continued and replaced trials, by hand-worked tables; and invariants of every population,
// whatever its trainings do.
#include "search/rungs/population.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"
#include "search/testing/farm.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Problem population_of(std::int64_t members, std::int64_t max, std::int64_t interval,
                      std::string algorithm = "pbt") {
  Problem out = problem_of({real("x", 0, 1)}, std::move(algorithm));
  out.resource = {"epoch", 1, max};
  out.max_trials = members;
  out.algorithm.interval = interval;
  return out;
}

// A population whose members have come to some steps.
class Story {
 public:
  explicit Story(Problem told) : problem(std::move(told)) {}

  // Adds a member with a value at the end of the first interval; NaN: no value yet.
  void begins(double loss = kNaN) {
    history.stages.push_back(first_members(problem, history, 1).at(0));
    history.trials.push_back(Json::object({{"x", 0.5}}));
    if (!std::isnan(loss)) comes_to_its_rung(history.trials.size() - 1, loss);
  }
  void comes_to_its_rung(std::size_t trial, std::optional<double> loss) {
    const std::int64_t step = history.stages[trial].until_step;
    const bool last = step == problem.resource.max;
    learns(trial, last ? api::FactKind::kResult : api::FactKind::kRung, step, loss);
    if (!last) learns(trial, api::FactKind::kStopped, step, loss);
  }
  // Exits one step before it, having reported this value.
  void leaves_before_its_rung(std::size_t trial, double loss) {
    const std::int64_t step = history.stages[trial].until_step;
    learns(trial, api::FactKind::kRung, step, loss);
    learns(trial, api::FactKind::kStopped, step - 1, loss);
  }
  void fails(std::size_t trial) { learns(trial, api::FactKind::kFailed, 0, std::nullopt); }
  void learns(std::size_t trial, api::FactKind kind, std::int64_t step,
              std::optional<double> value) {
    history.events.push_back(fact(static_cast<std::int64_t>(trial), kind, step, value));
    history.events.back().fact.seq = static_cast<std::int64_t>(history.events.size());
  }

  // Carries out the next decision and returns it: "1 resumes until 4", "5 takes over from 2 at 2
  // for 0".
  std::string next() {
    const bool last = trials_missing(problem, history) == 0;
    if (const auto on = next_promotion(problem, history, last)) {
      history.stages[static_cast<std::size_t>(on->trial)] = on->stage;
      return std::to_string(on->trial) + " resumes until " + std::to_string(on->stage.until_step);
    }
    const auto in = next_replacement(problem, history, last);
    if (!in) return "nothing";
    history.stages.push_back(in->stage);
    history.trials.push_back(in->parameters);
    return std::to_string(history.trials.size() - 1) + " takes over from " +
           std::to_string(in->stage.parent->trial) + " at " +
           std::to_string(in->stage.parent->step) + " for " + std::to_string(in->trial);
  }

  Problem problem;
  History history;
};

TEST(Intervals, AreATenthOfTheTrainingUnlessSaid) {
  Problem problem = population_of(4, 100, 30);
  EXPECT_THAT(population_ladder(problem), ElementsAre(30, 60, 90, 100));
  problem.algorithm.interval.reset();
  EXPECT_EQ(population_ladder(problem).size(), 10U);
  problem.resource = {"epoch", 20, 100};
  EXPECT_THAT(population_ladder(problem), ElementsAre(20, 40, 60, 80, 100));
  problem.resource = {"epoch", 1, 3};
  EXPECT_THAT(population_ladder(problem), ElementsAre(1, 2, 3));
  EXPECT_THAT(rung_steps(problem.algorithm, std::nullopt, problem.resource), ElementsAre(1, 2));
  EXPECT_TRUE(promotes(problem));
  problem.resource = {"epoch", 3, 3};
  EXPECT_FALSE(promotes(problem));
}

TEST(Populations, AreCompleteBeforeAnythingIsDecided) {
  Story story(population_of(3, 6, 2));
  EXPECT_EQ(trials_missing(story.problem, story.history), 3);
  story.begins(0.1);
  story.begins(0.2);
  EXPECT_EQ(trials_missing(story.problem, story.history), 1);
  EXPECT_EQ(story.next(), "nothing");
  story.begins();
  EXPECT_EQ(story.next(), "0 resumes until 4");
}

TEST(Populations, DecideOnceHalfOfThemAreThere) {
  Story story(population_of(4, 6, 2));
  for (const double loss : {0.4, kNaN, kNaN, kNaN}) story.begins(loss);
  EXPECT_EQ(story.next(), "nothing");
  story.comes_to_its_rung(1, 0.3);
  EXPECT_EQ(story.next(), "1 resumes until 4");
  EXPECT_EQ(story.next(), "4 takes over from 1 at 2 for 0");
  EXPECT_EQ(story.next(), "nothing");
  story.comes_to_its_rung(2, 0.2);
  EXPECT_EQ(story.next(), "2 resumes until 4");
  story.comes_to_its_rung(3, 0.9);  // number 4 of 4, and the worst one is replaced
  EXPECT_EQ(story.next(), "5 takes over from 2 at 2 for 3");
  EXPECT_EQ(trials_missing(story.problem, story.history), 0) << "those who took over are members";
}

TEST(Populations, NoMemberIsMoreThanOneIntervalAhead) {
  Story story(population_of(4, 8, 2));
  for (const double loss : {0.1, 0.2, 0.3, kNaN}) story.begins(loss);
  for (const char* decided : {"0 resumes until 4", "1 resumes until 4"}) {
    EXPECT_EQ(story.next(), decided);
  }
  EXPECT_THAT(story.next(), HasSubstr("4 takes over from 0 at 2 for 2"));
  for (const std::size_t trial : {0U, 1U, 4U}) story.comes_to_its_rung(trial, 0.1);
  EXPECT_EQ(story.next(), "nothing") << "3 has not come to step 2 yet";
  story.comes_to_its_rung(3, 0.15);
  EXPECT_EQ(story.next(), "3 resumes until 4");
  EXPECT_EQ(story.next(), "0 resumes until 6");
}

TEST(Populations, MembersWithNaNAreReplacedAndNeverCopied) {
  Story story(population_of(4, 6, 2));
  for (int i = 0; i < 4; ++i) story.begins();
  story.comes_to_its_rung(0, std::nullopt);
  story.comes_to_its_rung(1, std::nullopt);
  story.comes_to_its_rung(2, 0.7);
  story.comes_to_its_rung(3, 0.8);
  EXPECT_EQ(story.next(), "2 resumes until 4");
  EXPECT_EQ(story.next(), "3 resumes until 4");
  // One of four is replaced, and one of the other two equally bad members is above it.
  EXPECT_EQ(story.next(), "0 resumes until 4");
  EXPECT_EQ(story.next(), "4 takes over from 2 at 2 for 1");
}

// The best member stopped by its own patience after epoch 1, so no checkpoint of epoch 2 exists to
// start from.
TEST(Populations, AMemberThatLeftBeforeTheRungIsNoParent) {
  Story story(population_of(4, 6, 2));
  for (const double loss : {kNaN, 0.2, 0.3, 0.9}) story.begins(loss);
  story.leaves_before_its_rung(0, 0.1);
  EXPECT_EQ(story.next(), "0 resumes until 4") << "from the checkpoint that it has";
  EXPECT_EQ(story.next(), "1 resumes until 4");
  EXPECT_EQ(story.next(), "2 resumes until 4");
  EXPECT_EQ(story.next(), "4 takes over from 1 at 2 for 3");
}

// All but the worst member left before the rung, so its checkpoint of the rung is the only one. The
// second worst is not replaced by a copy of it.
TEST(Populations, NoMemberIsReplacedFromAWorseOne) {
  Story story(population_of(4, 6, 2));
  story.problem.algorithm.quantile = 0.5;
  for (const double loss : {kNaN, kNaN, kNaN, 0.9}) story.begins(loss);
  story.leaves_before_its_rung(0, 0.1);
  story.leaves_before_its_rung(1, 0.2);
  story.leaves_before_its_rung(2, 0.3);
  EXPECT_EQ(story.next(), "0 resumes until 4");
  EXPECT_EQ(story.next(), "1 resumes until 4");
  EXPECT_EQ(story.next(), "2 resumes until 4");
  EXPECT_EQ(story.next(), "3 resumes until 4");
}

TEST(Populations, AllMayBeParentsIfNoReportIsOfTheRung) {
  Story story(population_of(4, 6, 2));
  for (int i = 0; i < 4; ++i) story.begins();
  for (const std::size_t trial : {0, 1, 2, 3}) {
    story.leaves_before_its_rung(trial, 0.1 * static_cast<double>(trial));
  }
  for (int i = 0; i < 3; ++i) story.next();
  EXPECT_EQ(story.next(), "4 takes over from 0 at 2 for 3");
}

TEST(Failures, AreNotReplacedFromAMemberThatLeftEarly) {
  Story story(population_of(3, 6, 2));
  for (const double loss : {kNaN, 0.2, 0.3}) story.begins(loss);
  story.leaves_before_its_rung(0, 0.1);
  EXPECT_EQ(story.next(), "0 resumes until 4");
  EXPECT_EQ(story.next(), "1 resumes until 4");
  EXPECT_EQ(story.next(), "3 takes over from 1 at 2 for 2");
  story.fails(3);
  EXPECT_EQ(story.next(), "4 takes over from 1 at 2 for 3");
}

TEST(Populations, TheYoungestOfEqualMembersIsReplaced) {
  Story story(population_of(4, 6, 2));
  for (int i = 0; i < 4; ++i) story.begins(0.5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(story.next(), std::to_string(i) + " resumes until 4");
  }
  EXPECT_EQ(story.next(), "4 takes over from 0 at 2 for 3");
}

TEST(Populations, AllContinueIfNoValueIsFinite) {
  Story story(population_of(2, 6, 2));
  for (int i = 0; i < 2; ++i) story.begins();
  for (int i = 0; i < 2; ++i) story.comes_to_its_rung(i, std::nullopt);
  EXPECT_EQ(story.next(), "0 resumes until 4");
  EXPECT_EQ(story.next(), "1 resumes until 4");
}

TEST(Populations, MayHaveMoreMembersThanThereArePoints) {
  Problem problem = population_of(8, 6, 2);
  problem.parameters = {boolean("b")};
  const auto sampler = make_sampler(problem).value();
  const Suggestion all = sampler->suggest({}, 8);
  EXPECT_EQ(all.points.size(), 8U);
  EXPECT_FALSE(all.exhausted);
  EXPECT_NE(all.points[0], all.points[1]) << "as different as there are points";
}

TEST(Populations, TheWayUpIsTheObjectives) {
  Story story(population_of(2, 6, 2));
  story.problem.objectives[0].direction = api::Direction::kMaximize;
  story.begins(0.9);
  story.begins(0.1);
  EXPECT_EQ(story.next(), "0 resumes until 4");
  EXPECT_EQ(story.next(), "2 takes over from 0 at 2 for 1");
}

TEST(Failures, AtTheStartAreReplacedByANewMember) {
  Story story(population_of(2, 6, 2));
  story.begins();
  story.begins();
  story.fails(0);
  EXPECT_EQ(trials_missing(story.problem, story.history), 1);
  EXPECT_EQ(story.next(), "nothing");
  story.begins();
  EXPECT_EQ(story.history.stages[2].replaces, 0);
  EXPECT_EQ(trials_missing(story.problem, story.history), 0);
}

TEST(Failures, LaterAreReplacedByACopyAtTheOthersRung) {
  Story story(population_of(3, 8, 2));
  for (const double loss : {0.1, 0.2, 0.15}) story.begins(loss);
  EXPECT_EQ(story.next(), "0 resumes until 4");
  EXPECT_EQ(story.next(), "2 resumes until 4");
  EXPECT_EQ(story.next(), "3 takes over from 0 at 2 for 1");
  story.fails(0);
  EXPECT_EQ(story.next(), "4 takes over from 2 at 2 for 0");
  story.fails(4);
  EXPECT_EQ(story.next(), "5 takes over from 2 at 2 for 4");
  EXPECT_EQ(trials_missing(story.problem, story.history), 0);
}

TEST(Failures, OfDeletedTrialsAreNotReplaced) {
  Story story(population_of(2, 6, 2));
  story.begins();
  story.begins(0.3);
  story.fails(0);
  story.history.events.back().fact.seq = 0;
  EXPECT_EQ(trials_missing(story.problem, story.history), 0);
  EXPECT_EQ(story.next(), "1 resumes until 4");
}

TEST(Schedules, ReplaceEachTrialByItself) {
  Problem problem = problem_of({real("x", 0, 1)}, "schedule");
  problem.resource = {"epoch", 1, 9};
  problem.max_trials = 2;
  problem.algorithm.legs = {{3, Json::object({{"x", 0.1}}), 77},
                            {5, Json::object({{"x", 0.2}}), {}},
                            {9, Json::object({{"x", 0.3}}), {}}};
  Story story(problem);
  EXPECT_EQ(first_members(problem, {}, 1).at(0).seed, 77);
  story.begins(0.5);
  story.begins();
  EXPECT_EQ(story.next(), "2 takes over from 0 at 3 for 0");
  EXPECT_EQ(story.history.trials[2].dump(), R"({"x":0.2})");
  EXPECT_EQ(story.next(), "nothing");
  story.comes_to_its_rung(2, 0.4);
  EXPECT_EQ(story.next(), "3 takes over from 2 at 5 for 2");
  EXPECT_EQ(story.history.stages[3].until_step, 9);
  story.fails(1);
  EXPECT_EQ(story.next(), "nothing") << "a schedule that failed is not tried with other values";
}

// ---- Whatever the trainings do -----------------------------------------------------------------

class EveryPopulation : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Populations, EveryPopulation, ::testing::Values("pbt", "pb2"),
                         [](const auto& test) { return test.param; });

TEST_P(EveryPopulation, KeepsItsSizeItsPaceAndItsCheckpoints) {
  Random random(41);
  const int farms = GetParam() == "pbt" ? 300 : 20;
  for (int farm = 0; farm < farms && !HasFailure(); ++farm) {
    SCOPED_TRACE("farm " + std::to_string(farm));
    const auto members = static_cast<std::int64_t>(2 + random.below(9));
    const auto max = static_cast<std::int64_t>(4 + random.below(10));
    Problem problem =
        population_of(members, max, 1 + static_cast<std::int64_t>(random.below(3)), GetParam());
    problem.parameters = random_space(random, 4, false);
    problem.algorithm.seed = farm;
    const bool fails = random.below(2) == 0;
    FarmSettings settings;
    settings.workers = static_cast<std::int64_t>(1 + random.below(10));
    settings.laziness = random.below(2) == 0 ? 0.7 : 0;
    settings.failure = fails ? 0.05 : 0;
    settings.not_a_number = random.below(2) == 0 ? 0.1 : 0;
    settings.seed = static_cast<std::uint64_t>(farm);
    const Harvest harvest = work(problem, settings, [&](const FarmTrial& trial) {
      return static_cast<double>(mix_keys(trial.step, mix_keys(7, trial.index)) % 1000);
    });
    for (const Json& point : harvest.history.trials) {
      ASSERT_EQ(complaint(problem.parameters, point), "") << point.dump();
    }
    EXPECT_EQ(harvest.complaints, std::vector<std::string>());
    // All members came to the end, at the cost of as many full trainings.
    EXPECT_EQ(harvest.results, members);
    if (!fails) {
      EXPECT_EQ(harvest.steps, members * max);
    }
  }
}

TEST(Populations, AreAFunctionOfTheHistory) {
  const Problem problem = population_of(6, 12, 2, "pb2");
  const auto loss = [](const FarmTrial& trial) {
    return std::abs(trial.parameters.find("x")->as_double() - 0.3) +
           1.0 / static_cast<double>(trial.step);
  };
  const Harvest one = work(problem, {.workers = 3, .laziness = 0.5}, loss);
  const Harvest two = work(problem, {.workers = 3, .laziness = 0.5}, loss);
  EXPECT_EQ(one.history.trials, two.history.trials);
  EXPECT_GT(one.history.trials.size(), 6U);
}

// ---- Figure 2 of Jaderberg et al. 2017 ---------------------------------------------------------

// Maximise 1.2 - a^2 - b^2 by ascending 1.2 - h0 a^2 - h1 b^2, from a = b = 0.9.
double ascend(FarmTrial& trial, double h0, double h1) {
  constexpr double kRate = 0.01;
  if (trial.weights.empty()) trial.weights = {0.9, 0.9};
  trial.weights[0] -= kRate * 2 * h0 * trial.weights[0];
  trial.weights[1] -= kRate * 2 * h1 * trial.weights[1];
  return std::pow(trial.weights[0], 2) + std::pow(trial.weights[1], 2) - 1.2;
}

double best_loss(const Problem& problem, const Train& train, std::int64_t workers) {
  return work(problem, {.workers = workers}, train).best;
}

// Two workers: the first can only improve a, the second only b. Neither gets beyond 0.4 alone.
TEST(Figure2, ExploitAndExploreGetWhereNoFixedChoiceDoes) {
  const Train train = [](FarmTrial& trial) {
    const bool first = trial.parameters.find("h")->as_string() == "first";
    return ascend(trial, first ? 1 : 0, first ? 0 : 1);
  };
  for (std::int64_t seed = 0; seed < 10; ++seed) {
    Problem problem = population_of(2, 300, 6);
    problem.parameters = {choice("h", {"first", "second"})};
    problem.algorithm.seed = seed;
    EXPECT_LT(best_loss(problem, train, 2), -1.1) << seed;  // 1.2 is the maximum
    problem.algorithm = {};
    problem.algorithm.name = api::AlgorithmKind::kGrid;
    EXPECT_GT(best_loss(problem, train, 2), -0.4);
  }
}

// The same with h free: random search finds a fixed h between, a population raises both on the way.
TEST_P(EveryPopulation, BeatsRandomSearchAtTheSameCost) {
  const Train train = [](FarmTrial& trial) {
    return ascend(trial, trial.parameters.find("h0")->as_double(),
                  trial.parameters.find("h1")->as_double());
  };
  double gap = 0;
  double random_gap = 0;
  const std::int64_t seeds = GetParam() == "pbt" ? 20 : 5;  // a model takes its time
  for (std::int64_t seed = 0; seed < seeds; ++seed) {
    Problem problem = population_of(6, 100, 5, GetParam());
    problem.parameters = {real("h0", 0, 1), real("h1", 0, 1)};
    problem.algorithm.seed = seed;
    gap += (best_loss(problem, train, 3) + 1.2) / static_cast<double>(seeds);
    problem.algorithm = {};
    problem.algorithm.name = api::AlgorithmKind::kRandom;
    problem.algorithm.seed = seed;
    random_gap += (best_loss(problem, train, 3) + 1.2) / static_cast<double>(seeds);
  }
  EXPECT_LT(gap, 0.6 * random_gap) << gap << " and " << random_gap;
  RecordProperty("gap", std::to_string(gap));
  RecordProperty("random", std::to_string(random_gap));
}

}  // namespace
}  // namespace fettle::search
