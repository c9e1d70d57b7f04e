// Whole searches along synthetic learning curves: the benefit of pausing, promoting and stopping,
// and their invariants on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/trial/trial.h"
#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"
#include "search/testing/curves.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

constexpr std::int64_t kWorkers = 8;
constexpr std::int64_t kProblems = 8;
// Problems that nothing was tuned on: fettle-search-schedules begins at 1000.
constexpr std::uint64_t kFirstProblem = 5000;

std::int64_t ticks_of(std::int64_t full_trainings) {
  return full_trainings * kCurveSteps / kWorkers;
}

Problem problem_with(const std::string& algorithm, const CurveProblem& curves, std::int64_t seed) {
  Problem out = problem_of(curves.parameters, algorithm, seed);
  out.resource = {"epoch", 1, kCurveSteps};
  return out;
}

Problem stopped_by(const std::string& rule, const CurveProblem& curves, std::int64_t seed,
                   bool promote = false) {
  Problem out = problem_with("random", curves, seed);
  out.early_stopping.emplace();
  out.early_stopping->name = *api::from_string<api::StoppingKind>(rule);
  out.early_stopping->promote = promote;
  return out;
}

using Maker = std::function<Problem(const CurveProblem&, std::int64_t seed)>;
Maker named(const std::string& algorithm) {
  return [algorithm](const CurveProblem& curves, std::int64_t seed) {
    return problem_with(algorithm, curves, seed);
  };
}

// Returns the mean end, without noise, of the trial that the search would recommend.
double mean_end(const std::string& family, const Maker& maker, std::int64_t full_trainings,
                std::int64_t problems = kProblems) {
  double sum = 0;
  for (std::int64_t i = 0; i < problems; ++i) {
    const CurveProblem curves =
        curve_problem(family, kFirstProblem + static_cast<std::uint64_t>(i));
    const Training done = train(maker(curves, i), curves.loss, kWorkers, ticks_of(full_trainings));
    const auto best = static_cast<std::size_t>(done.bests.back().trial);
    sum += curves.clear(done.history.trials[best], kCurveSteps);
  }
  return sum / static_cast<double>(problems);
}

class EveryFamily : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Curves, EveryFamily, ::testing::ValuesIn(curve_families()),
                         [](const auto& test) { return test.param; });

// A promoted trial resumes from the rung at which it paused, one rung at a time, each rung once.
TEST_P(EveryFamily, TrialsClimbRungByRung) {
  for (const char* algorithm : {"hyperband", "bohb"}) {
    const CurveProblem curves = curve_problem(GetParam(), 1);
    const Problem problem = problem_with(algorithm, curves, 1);
    const std::vector<std::int64_t> ladder = ladder_of(problem);
    const Training training = train(problem, curves.loss, kWorkers, ticks_of(15));
    std::map<std::int64_t, std::int64_t> until;
    for (const Event& event : training.history.events) {
      if (event.fact.kind == api::FactKind::kRung) continue;
      EXPECT_GT(event.fact.step, until[event.trial]);
      if (until[event.trial] != 0) {
        const auto before = std::find(ladder.begin(), ladder.end(), until[event.trial]);
        EXPECT_EQ(event.fact.step, *(before + 1));
      }
      until[event.trial] = event.fact.step;
    }
  }
}

TEST_P(EveryFamily, TheSameSeedGivesTheSameSearch) {
  for (const char* algorithm : {"hyperband", "bohb"}) {
    const CurveProblem curves = curve_problem(GetParam(), 2);
    const Problem problem = problem_with(algorithm, curves, 2);
    const Training once = train(problem, curves.loss, kWorkers, ticks_of(8));
    const Training again = train(problem, curves.loss, kWorkers, ticks_of(8));
    EXPECT_EQ(once.log, again.log);
  }
}

// The kind of curves is not known beforehand. A model and a hedge must pay if early losses predict
// the end (a third of random search's distance from the best end, with the same work), and must do
// no harm if they mislead: a tenth more is within the resolution of the problems. If training
// overfits, the two are about level, which eight problems do not show.
TEST_P(EveryFamily, BohbIsBetterThanRandomSearchOrNoWorse) {
  if (kSanitized) GTEST_SKIP() << "measures what a search is worth";
  const bool tells = GetParam() == "steady" || GetParam() == "rates";
  const std::int64_t problems = GetParam() == "overfit" ? 3 * kProblems : kProblems;
  const auto end = [&](const char* name) {
    return mean_end(GetParam(), named(name), 40, problems);
  };
  const double alone = end("random");
  EXPECT_LT(end("bohb"), (tells ? 1.0 / 3 : 1.1) * alone);
}

// Ranks at the first step are nearly as good as a full training's: halving sees several times as
// many configurations, so it must come closer with the same work.
TEST(Fidelity, WhereEarlyLossesTellHalvingIsWorthALot) {
  const double alone = mean_end("steady", named("random"), 25);
  const auto asha = [](bool promote) {
    return [promote](const CurveProblem& curves, std::int64_t seed) {
      return stopped_by("asha", curves, seed, promote);
    };
  };
  EXPECT_LT(mean_end("steady", asha(false), 25), alone);
  EXPECT_LT(mean_end("steady", asha(true), 25), alone);
  EXPECT_LT(mean_end("steady", named("hyperband"), 25), alone);
}

TEST(Fidelity, TheLastCallBringsATrialToItsEnd) {
  for (const std::int64_t trials : {1, 2, 5, 9}) {
    for (const char* algorithm : {"hyperband", "bohb"}) {
      const CurveProblem curves = curve_problem("steady", 3);
      Problem problem = problem_with(algorithm, curves, 3);
      problem.max_trials = trials;
      const Training training = train(problem, curves.loss, kWorkers, 1000);
      EXPECT_EQ(training.history.trials.size(), static_cast<std::size_t>(trials));
      EXPECT_LT(training.best_result, 3) << algorithm << " with " << trials;
      EXPECT_FALSE(any_runs(problem, training.history));
    }
  }
}

// Checks each of the first 40 trials, by the history at its beginning.
TEST(Fidelity, ModelsSayWhyAPointWasChosen) {
  const CurveProblem curves = curve_problem("steady", 7);
  const Problem problem = problem_with("bohb", curves, 7);
  const Training done = train(problem, curves.loss, 1, 40 * kCurveSteps);
  const auto sampler = make_sampler(problem).value();
  std::map<std::string, int> said;
  History known;
  auto next = done.history.events.begin();
  ASSERT_GT(done.history.trials.size(), 40U);
  for (std::size_t trial = 0; trial < 40; ++trial) {
    const auto why = sampler->explain(known, done.history.trials[trial]);
    ASSERT_TRUE(why);
    EXPECT_FALSE(why->mean) << "places are no losses";
    EXPECT_THAT(why->words, ::testing::HasSubstr("epoch "));
    for (const char* kind : {"among the best", "quasi-random"}) {
      if (why->words.find(kind) != std::string::npos) ++said[kind];
    }
    known.trials.push_back(done.history.trials[trial]);
    known.stages.push_back(done.history.stages[trial]);
    const auto later = static_cast<std::int64_t>(trial) + 1;
    for (; next != done.history.events.end() && next->trial < later; ++next) {
      known.events.push_back(*next);
    }
  }
  EXPECT_GT(said["among the best"], 20);
  EXPECT_GT(said["quasi-random"], 3);
}

}  // namespace
}  // namespace fettle::search
