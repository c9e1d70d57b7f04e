// Expected hypervolume improvement for several objectives: the coverage of fronts, and infeasible
// regions that it avoids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "search/search.h"
#include "search/testing/fronts.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of the folder above

constexpr int kTrials = 60;

// The largest share that another sampler covers.
double best_of_others(const FrontProblem& problem, int parallel) {
  double best = 0;
  for (const char* name : {"nsga2", "tpe", "random"}) {
    best = std::max(best, median_share(name, problem, kTrials, parallel));
  }
  return best;
}

TEST(EhviSampler, CoversTheFrontOfZdt1) {
  EXPECT_GT(median_share("ehvi", zdt1(), kTrials, 1), 0.9);
  EXPECT_LT(best_of_others(zdt1(), 1), 0.4);
}

TEST(EhviSampler, CoversAConcaveFrontToo) {
  if (kSanitized) GTEST_SKIP() << "measures what a search is worth";
  EXPECT_GT(median_share("ehvi", zdt2(), kTrials, 1), 0.8);
  EXPECT_LT(best_of_others(zdt2(), 1), 0.4);
}

TEST(EhviSampler, CoversMoreOfDtlz2ThanTheOthers) {
  if (kSanitized) GTEST_SKIP() << "measures what a search is worth";
  const double share = median_share("ehvi", dtlz2(), kTrials, 1);
  EXPECT_GT(share, 0.5);
  EXPECT_GT(share, best_of_others(dtlz2(), 1) + 0.1);
}

TEST(EhviSampler, CoversItWithEightPending) {
  if (kSanitized) GTEST_SKIP() << "measures what a search is worth";
  EXPECT_GT(median_share("ehvi", zdt1(), kTrials, 8), 0.8);
}

// Counts infeasible trials in the second half of 60 on ZDT1, where trials beyond a wall result in
// `beyond`.
int infeasible_late(const std::vector<std::optional<double>>& beyond) {
  const Objectives front = zdt1().objectives;
  const Objectives objectives = [&](const Json& point) {
    return x_of(point, 3) > 0.4 ? beyond : front(point);
  };
  const History history = run(problem_with(unit_cube(), "ehvi", 2), objectives, kTrials, 1);
  int late = 0;
  for (std::size_t i = kTrials / 2; i < history.events.size(); ++i) {
    late += history.events[i].fact.infeasible;
  }
  return late;
}

TEST(EhviSampler, InfeasibleTrialsAreWalls) {
  EXPECT_LT(infeasible_late({std::nullopt, std::nullopt}), 6);
}

// A trial with one of several values missing is infeasible, however good the others are.
TEST(EhviSampler, HalfAResultIsNone) { EXPECT_LT(infeasible_late({-10.0, std::nullopt}), 6); }

TEST(EhviSampler, IsGpWithSeveralObjectives) {
  const History history = run(problem_with(unit_cube(), "ehvi", 2), zdt1().objectives, 12, 1);
  const auto next = [&](const char* name) {
    const auto sampler = std::move(make_sampler(problem_with(unit_cube(), name, 2))).value();
    return sampler->suggest(history, 2).points;
  };
  EXPECT_EQ(next("ehvi"), next("gp"));
  EXPECT_NE(next("ehvi"), next("nsga2"));
}

TEST(EhviSampler, ExplainsTheFirstObjectiveAndTheGainOfAll) {
  Problem problem = problem_with(unit_cube(), "ehvi", 2);
  const History history = run(problem, zdt1().objectives, 30, 1);
  const auto sampler = std::move(make_sampler(problem)).value();
  const auto said = sampler->explain(history, history.trials[20]);
  ASSERT_TRUE(said && said->mean && said->deviation && said->acquisition);
  EXPECT_NEAR(*said->mean, x_of(history.trials[20], 0), 0.05);
  EXPECT_THAT(said->words, ::testing::HasSubstr("hypervolume"));
}

}  // namespace
}  // namespace fettle::search
