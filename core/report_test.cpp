// Joining, thinning and measuring reports.
#include "core/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/report_history.h"

namespace fettle::core {
namespace {

using api::Report;

Report report_at(std::int64_t step, double accuracy) {
  Report report;
  report.step = step;
  report.metrics = {{"accuracy", accuracy}};
  return report;
}

std::vector<std::int64_t> steps_of(const Report& report) {
  std::vector<std::int64_t> steps;
  for (const api::HistoryPoint& point : report.history) steps.push_back(point.step);
  return steps;
}

api::StudySpec accuracy_study() {
  api::Objective objective;
  objective.metric = "accuracy";
  api::StudySpec spec;
  spec.objectives = {objective};
  return spec;
}

TEST(Report, NonFiniteValuesAreTheSameWhateverTheyAre) {
  EXPECT_TRUE(same_report(report_at(1, NAN), report_at(1, INFINITY)));
  EXPECT_FALSE(same_report(report_at(1, NAN), report_at(1, 0)));
  EXPECT_FALSE(same_report(report_at(1, 0.5), report_at(2, 0.5)));
}

TEST(Report, TheCurveGoesOnWhereTheEarlierRunEnded) {
  Report first = report_at(4, 0.4);
  first.history = {{1, {{"accuracy", 0.1}}}, {2, {{"accuracy", 0.2}}}};
  first.checkpoint = "step-2";
  first.checkpoint_step = 2;
  Report second = report_at(5, 0.5);
  second.history = {{3, {{"accuracy", 0.3}}}};
  const Report joined = join_reports(first, second, {});
  EXPECT_THAT(steps_of(joined), testing::ElementsAre(1, 2, 3, 5));
  EXPECT_EQ(joined.checkpoint, "step-2") << "the new run has none of its own yet";
}

TEST(Report, JoiningTwiceChangesNothing) {
  const Report once = join_reports(report_at(1, 0.1), report_at(2, 0.2), {});
  EXPECT_TRUE(same_report(once, join_reports(once, report_at(2, 0.2), {})));
}

TEST(Report, LongCurvesAreThinnedLogarithmicallyAndRungsStay) {
  std::optional<Report> report;
  for (std::int64_t step = 1; step <= 1000; ++step) {
    report = join_reports(report, report_at(step, 0.5), {{1, 30, 900}, {}});
  }
  const std::vector<std::int64_t> steps = steps_of(*report);
  EXPECT_EQ(steps.size(), kMaxHistoryPoints);
  EXPECT_THAT(steps, testing::IsSupersetOf({1, 30, 900, 1000}));
  EXPECT_GT(std::count_if(steps.begin(), steps.end(), [](std::int64_t s) { return s <= 100; }), 10);
}

TEST(Report, TheCurveIsBoundedEvenIfEveryStepIsARung) {
  std::vector<std::int64_t> rungs;
  std::optional<Report> report;
  for (std::int64_t step = 1; step <= 200; ++step) rungs.push_back(step);
  for (std::int64_t step : rungs) report = join_reports(report, report_at(step, 0.5), {rungs, {}});
  EXPECT_EQ(report->history.size(), kMaxHistoryPoints);
}

TEST(Report, ALongCurveKeepsTheBestValueOfAnObjective) {
  api::StudySpec spec = accuracy_study();
  spec.objectives[0].direction = api::Direction::kMaximize;
  spec.objectives[0].take = api::Take::kBest;
  std::optional<Report> report;
  for (std::int64_t step = 1; step <= 1000; ++step) {
    const double accuracy = step == 737 ? 0.99 : 0.5;
    report = join_reports(report, report_at(step, accuracy), {{}, spec.objectives});
  }
  EXPECT_EQ(report->history.size(), kMaxHistoryPoints);
  EXPECT_EQ(measure_end(spec, *report, /*completed=*/true).values[0], 0.99);
}

TEST(Report, ALongCurveKeepsTheNewestValueOfAnObjectiveThatIsReportedSeldom) {
  const api::StudySpec spec = accuracy_study();
  std::optional<Report> report;
  for (std::int64_t step = 1; step <= 1000; ++step) {
    Report newer;
    newer.step = step;
    newer.metrics["loss"] = 1;
    if (step % 937 == 0) newer.metrics["accuracy"] = 0.8;
    report = join_reports(report, newer, {{}, spec.objectives});
  }
  EXPECT_EQ(report->metrics.count("accuracy"), 0u);
  EXPECT_EQ(measure_end(spec, *report, /*completed=*/true).values[0], 0.8);
}

TEST(Measure, TheEndIsWhatTheReportSaysEvenWhereTheCurveWasThinned) {
  api::StudySpec spec = accuracy_study();
  api::Constraint constraint;
  constraint.metric = "memory";
  constraint.max = 10;
  spec.constraints = {constraint};
  Report report = report_at(1000, 0.5);
  report.metrics["memory"] = 12;
  report.history = {{1, {{"memory", 1}}}, {1000, {{"loss", 1}}}};
  const Measured measured = measure_end(spec, report, /*completed=*/true);
  EXPECT_EQ(measured.values[0], 0.5);
  EXPECT_TRUE(measured.infeasible) << "memory was 12 in the end";
}

TEST(Measure, AMetricMayComeFromAnEarlierPointThanTheLast) {
  const api::StudySpec spec = accuracy_study();
  const std::vector<api::HistoryPoint> curve = {{1, {{"accuracy", 0.5}}}, {2, {{"loss", 1.0}}}};
  const Measured measured = measure_at(spec, curve, 2);
  EXPECT_EQ(measured.values[0], 0.5);
  EXPECT_FALSE(measured.infeasible);
}

TEST(Measure, AConstraintThatNothingShowsToHoldIsBrokenAtTheEndOnly) {
  api::StudySpec spec = accuracy_study();
  api::Constraint constraint;
  constraint.metric = "memory";
  constraint.max = 10;
  spec.constraints = {constraint};
  EXPECT_FALSE(measure_end(spec, report_at(1, 0.5), /*completed=*/false).infeasible);
  EXPECT_TRUE(measure_end(spec, report_at(1, 0.5), /*completed=*/true).infeasible);
}

}  // namespace
}  // namespace fettle::core
