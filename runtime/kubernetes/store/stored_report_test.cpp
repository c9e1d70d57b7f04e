// Reports that were stored before the schema bounded them.
#include <gtest/gtest.h>

#include <string>

#include "api/trial/report.h"
#include "runtime/kubernetes/store/entries.h"

namespace fettle::kubernetes {
namespace {

Json trial_with(std::size_t metrics, std::size_t name_bytes) {
  Json values = Json::object();
  for (std::size_t i = 0; i < metrics; ++i) {
    std::string name = "m" + std::to_string(i);
    name.resize(name_bytes, 'm');
    values.set(name, 0.5);
  }
  Json trial = parse_json(R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial",
    "metadata": {"name": "s-0", "namespace": "team"},
    "spec": {"study": "s", "index": 0, "parameters": {"x": 1}, "seed": 1, "untilStep": 9,
             "workers": 1},
    "status": {"phase": "Running"}})")
                   .value();
  trial.find("status")->set("report", Json::object({{"step", 3}, {"metrics", values}}));
  return trial;
}

TEST(StoredReport, WithinBoundsIsRead) {
  const auto entry =
      read_trial_entry(trial_with(api::kMaxReportMetrics, api::kLongestMetricName)).value();
  ASSERT_TRUE(entry.trial != nullptr) << entry.readability.why;
  EXPECT_TRUE(entry.trial->status.report.has_value());
}

TEST(StoredReport, BeyondBoundsIsNoneAndTheTrialIsReadAllTheSame) {
  for (const auto& [metrics, bytes] :
       {std::pair<std::size_t, std::size_t>{api::kMaxReportMetrics + 1, 9}, {1, 1'500'000}}) {
    const auto entry = read_trial_entry(trial_with(metrics, bytes)).value();
    ASSERT_TRUE(entry.trial != nullptr) << entry.readability.why;
    EXPECT_EQ(entry.trial->status.phase, api::TrialPhase::kRunning);
    EXPECT_FALSE(entry.trial->status.report.has_value());
  }
}

}  // namespace
}  // namespace fettle::kubernetes
