// The learning curve stays bounded and ordered, and keeps the points on which decisions rest.
#include "api/trial/report_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace fettle::api {
namespace {

constexpr std::size_t kBytes = 3712;  // usual room in a Report

HistoryPoint point(std::int64_t step, double value = 0.5) { return {step, {{"loss", value}}}; }

bool holds(const std::vector<HistoryPoint>& history, std::int64_t step) {
  return std::ranges::any_of(history, [&](const HistoryPoint& p) { return p.step == step; });
}

TEST(ReportHistory, KeepsEverythingWhileItFits) {
  std::vector<HistoryPoint> history;
  for (int step = 1; step <= 40; ++step) add_history_point(history, point(step), {}, kBytes);
  EXPECT_EQ(history.size(), 40u);
}

TEST(ReportHistory, StaysBoundedOrderedAndKeepsFirstLastAndRungs) {
  const std::vector<std::int64_t> rungs = {1, 3, 9, 27, 81, 243, 729, 2187};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    std::vector<HistoryPoint> history;
    std::vector<std::int64_t> seen;
    for (std::int64_t step = 1; step < 3000;
         step += 1 + static_cast<std::int64_t>(random.below(4))) {
      seen.push_back(step);
      add_history_point(history, point(step, random.uniform()), {rungs, {}}, kBytes);
      ASSERT_LE(history.size(), kMaxHistoryPoints);
      ASSERT_TRUE(std::is_sorted(history.begin(), history.end(),
                                 [](const auto& a, const auto& b) { return a.step < b.step; }));
      ASSERT_EQ(history.back().step, step);
      ASSERT_EQ(history.front().step, 1);
    }
    for (const std::int64_t rung : rungs) {
      const bool printed = std::ranges::binary_search(seen, rung);
      EXPECT_TRUE(!printed || holds(history, rung)) << rung;
    }
  }
}

TEST(ReportHistory, SpacesPointsLogarithmically) {
  std::vector<HistoryPoint> history;
  for (std::int64_t step = 1; step <= 10000; ++step)
    add_history_point(history, point(step), {}, kBytes);
  double widest = 0;
  for (std::size_t i = 1; i < history.size(); ++i) {
    widest = std::max(widest, std::log(static_cast<double>(history[i].step + 1) /
                                       static_cast<double>(history[i - 1].step + 1)));
  }
  // Even spacing would be log(10001 / 2) / 49 = 0.17; 200 linear steps each would give 4.6.
  EXPECT_LT(widest, 0.7);
}

TEST(ReportHistory, AStepThatComesAgainIsMerged) {
  std::vector<HistoryPoint> history;
  add_history_point(history, {1, {{"loss", 0.5}}}, {}, kBytes);
  add_history_point(history, {1, {{"accuracy", 0.9}}}, {}, kBytes);
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0].metrics, (std::map<std::string, double>{{"accuracy", 0.9}, {"loss", 0.5}}));
}

TEST(ReportHistory, GoingBackDropsRepeatedSteps) {
  std::vector<HistoryPoint> history;
  for (int step = 1; step <= 9; ++step) add_history_point(history, point(step), {}, kBytes);
  add_history_point(history, point(4, 0.1), {}, kBytes);
  ASSERT_EQ(history.size(), 4u);
  EXPECT_EQ(history.back(), point(4, 0.1));
}

TEST(ReportHistory, ManyMetricsMakeFewerPoints) {
  std::vector<HistoryPoint> history;
  for (int step = 1; step <= 100; ++step) {
    HistoryPoint wide{step, {}};
    for (int m = 0; m < 20; ++m) wide.metrics["metric_number_" + std::to_string(m)] = 0.5;
    add_history_point(history, wide, {}, kBytes);
    ASSERT_FALSE(history.empty());
    ASSERT_EQ(history.back().step, step);
  }
  EXPECT_LE(history.size(), 6u);
}

TEST(ReportHistory, ResultsGoAfterRungs) {
  Objective objective;
  objective.metric = "loss";
  CurveNeeds needs{{}, {objective}};
  for (std::int64_t step = 1; step <= 500; ++step) needs.rungs.push_back(step);
  std::vector<HistoryPoint> history;
  for (const std::int64_t step : needs.rungs) {
    add_history_point(history, point(step, step == 7 ? 0.1 : 0.5), needs, kBytes);
  }
  EXPECT_EQ(history.size(), kMaxHistoryPoints);
  EXPECT_TRUE(holds(history, 7)) << "the best loss";
}

TEST(ReportHistory, TooManyRungsKeepTheNewest) {
  std::vector<std::int64_t> rungs;
  for (std::int64_t step = 1; step <= 500; ++step) rungs.push_back(step);
  std::vector<HistoryPoint> history;
  for (const std::int64_t step : rungs)
    add_history_point(history, point(step), {rungs, {}}, kBytes);
  EXPECT_EQ(history.back().step, 500);
  EXPECT_EQ(history.front().step, 451);
}

}  // namespace
}  // namespace fettle::api
