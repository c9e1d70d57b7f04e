#include "trainer/reporter/training_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "api/trial/report.h"
#include "base/json.h"

namespace fettle::trainer {
namespace {

TEST(EpochReport, IsOneObjectOnOneLine) {
  EpochReport report;
  report.step = 3;
  report.metrics = {{"validation_accuracy", 0.8966666666}, {"global_batch", 128}};
  report.checkpoint = "/a \"b\"/c";
  report.checkpoint_step = 3;
  report.final_result = true;
  EXPECT_EQ(to_line(report),
            "{\"step\": 3, \"validation_accuracy\": 0.896667, \"global_batch\": 128, "
            "\"checkpoint\": \"/a \\\"b\\\"/c\", \"checkpoint_step\": 3, \"final\": true}");
}

TEST(EpochReport, WritesWhatIsNotFiniteAsTheContractSays) {
  EpochReport report;
  report.metrics = {{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}};
  EXPECT_EQ(to_line(report), "{\"step\": 0, \"a\": NaN, \"b\": Infinity, \"c\": -Infinity}");
  EXPECT_TRUE(parse_json(to_line(report), {.allow_non_finite = true}).ok());
}

TEST(EpochReport, HoldsNoMoreMetricsThanAStatus) {
  Metrics many;
  for (int i = 99; i >= 60; --i) many.emplace_back("m" + std::to_string(i), i);
  const Metrics kept = first_metrics(many);
  ASSERT_EQ(kept.size(), api::kMaxReportMetrics);
  EXPECT_EQ(kept.front().first, "m99") << "the first stay, whatever the alphabet says";
  EXPECT_EQ(first_metrics(kept), kept);
}

TEST(StepTimes, QuantilesAreNearestRank) {
  StepTimes times;
  EXPECT_EQ(times.quantile(0.5), 0);
  for (int i = 20; i >= 1; --i) times.add(i);
  EXPECT_EQ(times.quantile(0.5), 10);
  EXPECT_EQ(times.quantile(0.95), 19);
  EXPECT_EQ(times.quantile(1), 20);
  EXPECT_EQ(times.total(), 210);
}

TEST(EpochReport, SaysWhatAsPrintedKeeps) {
  EXPECT_EQ(as_printed(2.174797348022461), 2.1748);
  EXPECT_EQ(as_printed(1e-300), 1e-300);
  EXPECT_TRUE(std::isnan(as_printed(NAN)));
}

}  // namespace
}  // namespace fettle::trainer
