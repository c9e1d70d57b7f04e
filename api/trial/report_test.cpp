// Reports grow line by line, are joined across runs, and stay bounded.
#include "api/trial/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "api/trial/trial_json.h"

namespace fettle::api {
namespace {

Report report_at(std::int64_t step, double accuracy) {
  Report report;
  report.step = step;
  report.metrics = {{"accuracy", accuracy}};
  return report;
}

std::vector<std::int64_t> steps_of(const Report& report) {
  std::vector<std::int64_t> steps;
  for (const HistoryPoint& point : report.history) steps.push_back(point.step);
  return steps;
}

TEST(Report, NonFiniteValuesAreEqual) {
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
  EXPECT_GT(std::ranges::count_if(steps, [](std::int64_t s) { return s <= 100; }), 10);
}

TEST(Report, TheCurveIsBoundedEvenIfEveryStepIsARung) {
  std::vector<std::int64_t> rungs;
  std::optional<Report> report;
  for (std::int64_t step = 1; step <= 200; ++step) rungs.push_back(step);
  for (std::int64_t step : rungs) report = join_reports(report, report_at(step, 0.5), {rungs, {}});
  EXPECT_EQ(report->history.size(), kMaxHistoryPoints);
}

ReportLine line_at(std::int64_t step, std::map<std::string, double> metrics) {
  ReportLine line;
  line.step = step;
  line.metrics = std::move(metrics);
  return line;
}

TEST(Report, GrowsByLinesAndKeepsTheCheckpointThatALineDoesNotName) {
  Report report;
  ReportLine first = line_at(1, {{"loss", 2.0}});
  first.checkpoint = "epoch-1";
  first.checkpoint_step = 1;
  add_line(report, first, {}, 100);
  add_line(report, line_at(2, {{"accuracy", 0.5}}), {}, 200);
  EXPECT_EQ(report.step, 2);
  EXPECT_EQ(report.metrics, (std::map<std::string, double>{{"accuracy", 0.5}, {"loss", 2.0}}));
  EXPECT_EQ(report.checkpoint, "epoch-1");
  EXPECT_EQ(report.checkpoint_step, 1);
  EXPECT_EQ(report.at_ms, 200);
  EXPECT_THAT(steps_of(report), testing::ElementsAre(1, 2));
  EXPECT_FALSE(report.final_result);
}

TEST(Report, NamesThatNoStoreWouldTakeAreLeftOut) {
  Report report;
  ReportLine line = line_at(1, {{std::string(kLongestMetricName, 'a'), 1.0},
                                {std::string(kLongestMetricName + 1, 'b'), 2.0}});
  line.checkpoint = std::string(kLongestCheckpointName + 1, 'c');
  add_line(report, std::move(line), {}, 0);
  EXPECT_EQ(report.metrics.size(), 1u);
  EXPECT_EQ(report.checkpoint, "");
}

TEST(Report, AForeignReportIsReadWithinBounds) {
  const auto with_points = [](std::size_t points, const std::string& name) {
    Report report;
    for (std::size_t step = 1; step <= points; ++step) {
      HistoryPoint point{static_cast<std::int64_t>(step), {}};
      for (int i = 0; i < 16; ++i) point.metrics[name + std::to_string(i)] = 1;
      report.history.push_back(std::move(point));
    }
    return read_report(write_report(report));
  };
  EXPECT_TRUE(with_points(kMaxHistoryValues / 16, "m").ok());
  EXPECT_THAT(with_points(kMaxHistoryValues / 16 + 1, "m").error().message,
              testing::HasSubstr("expected at most 256"));
  EXPECT_THAT(with_points(1, std::string(kLongestMetricName, 'm')).error().message,
              testing::HasSubstr("64 bytes"));
}

TEST(Report, ALineAtAnEarlierStepMeansThatTrainingWentBack) {
  Report report;
  for (const std::int64_t step : {1, 2, 3, 2}) {
    add_line(report, line_at(step, {{"loss", 1.0}}), {}, 0);
  }
  EXPECT_EQ(report.step, 2);
  EXPECT_THAT(steps_of(report), testing::ElementsAre(1, 2));
}

ReportLine waits_for(const std::string& waiting) {
  ReportLine line;
  line.waiting = waiting;
  return line;
}

TEST(Report, AWaitLeavesTheValuesAndEndsWithTheNextLine) {
  Report report;
  add_line(report, line_at(2, {{"loss", 0.5}}), {}, 100);
  add_line(report, waits_for("waits for ranks 2, 3"), {}, 200);
  EXPECT_EQ(report.waiting, "waits for ranks 2, 3");
  EXPECT_EQ(report.step, 2);
  EXPECT_EQ(report.metrics.at("loss"), 0.5);
  EXPECT_EQ(report.at_ms, 200);
  Report later = report;
  add_line(later, line_at(3, {{"loss", 0.4}}), {}, 300);
  EXPECT_EQ(later.waiting, "");
  later = report;
  later.waiting.clear();
  EXPECT_FALSE(same_report(report, later)) << "the end of a wait is worth a write";
  add_line(report, waits_for(std::string(3000, 'x')), {}, 400);
  EXPECT_EQ(report.waiting.size(), kLongestWaiting);
}

TEST(Report, ARunThatOnlyWaitsLeavesTheReportOfTheOneBefore) {
  Report earlier;
  add_line(earlier, line_at(4, {{"loss", 0.5}}), {}, 100);
  Report waits;
  add_line(waits, waits_for("waits for rank 1"), {}, 200);
  const Report joined = join_reports(earlier, waits, {});
  EXPECT_EQ(joined.step, 4) << "or the run would seem to have gone back";
  EXPECT_EQ(joined.metrics, earlier.metrics);
  EXPECT_EQ(joined.waiting, "waits for rank 1");
  EXPECT_EQ(joined.at_ms, 200);
  EXPECT_EQ(join_reports(std::nullopt, waits, {}).waiting, "waits for rank 1");
  Report trains;
  add_line(trains, line_at(5, {{"loss", 0.4}}), {}, 300);
  EXPECT_EQ(join_reports(joined, trains, {}).waiting, "");
}

TEST(Report, StaysWithinFourKibibytesForAnyLines) {
  Report report;
  for (std::int64_t step = 1; step <= 2000; ++step) {
    ReportLine line = line_at(step, {});
    line.checkpoint = std::string(200, 'c');
    for (int i = 0; i < 40; ++i) {
      line.metrics["a_rather_long_name_of_a_metric_" + std::to_string(i)] = -1.0 / 3 * 1e-200;
    }
    add_line(report, std::move(line), {}, 1'700'000'000'000);
  }
  EXPECT_EQ(report.metrics.size(), kMaxReportMetrics);
  EXPECT_LE(write_report(report).dump().size(), 4096u);
  add_line(report, waits_for(std::string(kLongestWaiting, 'w')), {}, 1'700'000'000'000);
  EXPECT_LE(write_report(report).dump().size(), 4096u);
}

}  // namespace
}  // namespace fettle::api
