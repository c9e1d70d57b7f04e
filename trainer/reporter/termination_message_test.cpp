// The final result as the kubelet reads it.
#include "trainer/reporter/termination_message.h"

#include <gtest/gtest.h>

#include <cmath>

#include "api/trial/report.h"
#include "base/file.h"
#include "base/json.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

EpochReport final_report() {
  EpochReport report;
  report.step = 9;
  report.metrics = {{"validation_accuracy", 0.9012}, {"loss", NAN}};
  report.final_result = true;
  return report;
}

TEST(TerminationMessage, IsTheMetricLine) {
  EXPECT_EQ(termination_message(final_report()), to_line(final_report()));
}

TEST(TerminationMessage, LeavesTheImplementationsToTheLog) {
  EpochReport report = final_report();
  report.implementations = Json::array();
  EXPECT_EQ(termination_message(report), to_line(final_report()));
  EXPECT_NE(to_line(report), to_line(final_report()));
}

TEST(TerminationMessage, FitsWhateverIsReportedAndKeepsWhatCameFirst) {
  EpochReport report = final_report();
  for (int i = 0; i < 200; ++i) report.metrics.emplace_back("metric_" + std::to_string(i), 1.5);
  report.checkpoint = std::string(500, 'c');
  const std::string message = termination_message(report);
  EXPECT_LE(message.size(), api::kMaxTerminationMessage);
  EXPECT_GT(message.size(), api::kMaxTerminationMessage - 100);
  const auto json = parse_json(message, {.allow_non_finite = true});
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(*json->find("validation_accuracy"), Json(0.9012));
  EXPECT_EQ(*json->find("final"), Json(true));

  report.checkpoint = std::string(5000, 'c');
  EXPECT_LE(termination_message(report).size(), api::kMaxTerminationMessage);
}

TEST(TerminationMessage, ReplacesWhatIsInTheFileButMakesNone) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("termination-log");
  EXPECT_EQ(write_termination_message(path, "{}").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_file(path, "something longer than that").ok());
  ASSERT_TRUE(write_termination_message(path, "{}").ok());
  EXPECT_EQ(*read_file(path), "{}");
}

}  // namespace
}  // namespace fettle::trainer
