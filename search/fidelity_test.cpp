// Whole searches along made-up learning curves: what pausing, promoting and stopping is worth, and
// that it keeps its promises on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "search/curves_testing.h"
#include "search/rung_table.h"
#include "search/schedule.h"
#include "search/testing.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

constexpr std::int64_t kWorkers = 4;
constexpr std::int64_t kLastStep = 27;
constexpr std::int64_t kTicks = 15 * kLastStep / kWorkers;  // the work of 15 full trials
constexpr std::int64_t kSeeds = 8;

Problem problem_with(const std::string& algorithm, std::int64_t seed) {
  Problem out = problem_of({real("x", 0, 1), real("y", 0, 1), real("z", 0, 1)}, algorithm, seed);
  out.resource = {"epoch", 1, kLastStep};
  return out;
}

Problem stopped_by(const std::string& rule, std::int64_t seed, bool promote = false) {
  Problem out = problem_with("random", seed);
  out.early_stopping.emplace();
  out.early_stopping->name = rule;
  out.early_stopping->promote = promote;
  out.early_stopping->threshold = 1.2;
  return out;
}

double mean_result(const std::function<Problem(std::int64_t)>& problem_for, const Curves& loss,
                   std::int64_t ticks = kTicks) {
  double sum = 0;
  for (std::int64_t seed = 0; seed < kSeeds; ++seed) {
    sum += train(problem_for(seed), loss, kWorkers, ticks).best_result;
  }
  return sum / kSeeds;
}

class EveryFamily : public ::testing::TestWithParam<CurveFamily> {};

INSTANTIATE_TEST_SUITE_P(Curves, EveryFamily, ::testing::ValuesIn(curve_families()),
                         [](const auto& test) { return test.param.name; });

// A promoted trial goes on from where it paused, one rung at a time, each rung once.
TEST_P(EveryFamily, TrialsClimbRungByRung) {
  for (const char* algorithm : {"hyperband", "bohb", "dehb"}) {
    const Problem problem = problem_with(algorithm, 1);
    const std::vector<std::int64_t> ladder = ladder_of(problem);
    const Training training = train(problem, GetParam().loss, kWorkers, kTicks);
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
  for (const char* algorithm : {"hyperband", "bohb", "dehb"}) {
    const auto once = train(problem_with(algorithm, 2), GetParam().loss, kWorkers, kTicks);
    const auto again = train(problem_with(algorithm, 2), GetParam().loss, kWorkers, kTicks);
    EXPECT_EQ(once.log, again.log);
  }
}

// Which kind of curves there are is not known beforehand. Trusting the first rung is a fine thing
// where it tells, and worse than no halving where it misleads; hedging by what is measured is
// better on the whole, and nowhere far behind.
TEST(Fidelity, OverAllKindsOfCurvesHedgingIsBest) {
  constexpr std::int64_t kLongTicks = 2 * kTicks;
  std::map<std::string, double> sum;
  for (const CurveFamily& family : curve_families()) {
    const auto search = [&](const std::string& name, const auto& problem_for) {
      const double result = mean_result(problem_for, family.loss, kLongTicks);
      sum[name] += result;
      return result;
    };
    const auto named = [&](const std::string& algorithm) {
      return search(algorithm, [&](std::int64_t seed) { return problem_with(algorithm, seed); });
    };
    const double full = named("random");
    search("asha", [](std::int64_t seed) { return stopped_by("asha", seed, true); });
    EXPECT_LT(named("bohb"), 1.5 * full) << family.name;
    EXPECT_LT(named("dehb"), 1.5 * full) << family.name;
  }
  for (const char* hedging : {"bohb", "dehb"}) {
    EXPECT_LT(sum[hedging], 0.85 * sum["random"]) << hedging;
    EXPECT_LT(sum[hedging], 0.85 * sum["asha"]) << hedging;
  }
}

TEST(Fidelity, WhereEarlyLossesTellHalvingIsWorthALot) {
  const CurveFamily family = curve_families()[0];
  const auto full = [](std::int64_t seed) { return problem_with("random", seed); };
  const double alone = mean_result(full, family.loss);
  for (const char* rule : {"asha", "median", "percentile", "curve"}) {
    const auto stopped = [rule](std::int64_t seed) { return stopped_by(rule, seed); };
    EXPECT_LT(mean_result(stopped, family.loss), alone) << rule;
  }
  const auto paused = [](std::int64_t seed) { return stopped_by("asha", seed, true); };
  EXPECT_LT(mean_result(paused, family.loss), 0.7 * alone);
}

TEST(Fidelity, TheLastCallBringsATrialToItsEnd) {
  for (const std::int64_t trials : {1, 2, 5, 9}) {
    for (const char* algorithm : {"hyperband", "bohb"}) {
      Problem problem = problem_with(algorithm, 3);
      problem.max_trials = trials;
      const Training training = train(problem, curve_families()[0].loss, kWorkers, 1000);
      EXPECT_EQ(training.history.trials.size(), static_cast<std::size_t>(trials));
      EXPECT_LT(training.best_result, 2) << algorithm << " with " << trials;
      EXPECT_FALSE(any_runs(problem, training.history));
    }
  }
}

}  // namespace
}  // namespace fettle::search
