// Measuring reports.
#include "core/facts/measurement.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fettle::core {
namespace {

using api::Report;

Report report_at(std::int64_t step, double accuracy) {
  Report report;
  report.step = step;
  report.metrics = {{"accuracy", accuracy}};
  return report;
}

api::StudySpec accuracy_study() {
  api::Objective objective;
  objective.metric = "accuracy";
  api::StudySpec spec;
  spec.objectives = {objective};
  return spec;
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
  EXPECT_EQ(report->history.size(), api::kMaxHistoryPoints);
  EXPECT_EQ(measure_end(spec, *report, /*completed=*/true).values[0], 0.99);
}

TEST(Report, ALongCurveKeepsTheNewestValueOfARareObjective) {
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

TEST(Measure, TheEndComesFromTheReportEvenIfTheCurveIsThinned) {
  api::StudySpec spec = accuracy_study();
  api::Constraint constraint;
  constraint.metric = "memory";
  constraint.max = 10;
  spec.constraints = {constraint};
  Report report = report_at(1000, 0.5);
  report.metrics["memory"] = 12;
  report.history = {{1, {{"memory", 1}}}, {1000, {{"loss", 1}}}};
  const Measurement measurement = measure_end(spec, report, /*completed=*/true);
  EXPECT_EQ(measurement.values[0], 0.5);
  EXPECT_TRUE(measurement.infeasible) << "memory was 12 in the end";
}

TEST(Measure, AMetricMayComeFromAnEarlierPointThanTheLast) {
  const api::StudySpec spec = accuracy_study();
  const std::vector<api::HistoryPoint> curve = {{1, {{"accuracy", 0.5}}}, {2, {{"loss", 1.0}}}};
  const Measurement measurement = measure_at(spec, curve, 2);
  EXPECT_EQ(measurement.values[0], 0.5);
  EXPECT_FALSE(measurement.infeasible);
}

TEST(Measure, AnUnmeasuredConstraintIsBrokenOnlyAtTheEnd) {
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
