#include "trainer/step/device_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>

#include "api/trial/metric_names.h"
#include "api/trial/report.h"
#include "base/file.h"
#include "base/test_paths.h"

namespace fettle::trainer {

namespace metric = api::metric;
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const kernels::DeviceIdentity kH100{"NVIDIA H100 80GB HBM3", "1"};

TEST(DevicePeak, IsThatOfThePrecision) {
  EXPECT_EQ(peak_flops_of(kH100, api::Precision::kBf16), 989.4e12);
  EXPECT_EQ(peak_flops_of(kH100, api::Precision::kFp16), 989.4e12);
  EXPECT_EQ(peak_flops_of(kH100, api::Precision::kFp32), 66.9e12) << "not TF32's";
  EXPECT_EQ(peak_flops_of(kH100, api::Precision::kTf32), 494.7e12);
  EXPECT_EQ(peak_flops_of(kH100, api::Precision::kAuto), 494.7e12);
}

TEST(DevicePeak, OfWhatIsNotInTheTableIsNotGuessed) {
  EXPECT_EQ(peak_flops_of({}, api::Precision::kBf16), std::nullopt);
  EXPECT_EQ(peak_flops_of({"emulated GPU", "1"}, api::Precision::kBf16), std::nullopt);
}

TEST(ComputeMetrics, AreAShareOfWhatAllDevicesCouldDo) {
  EXPECT_THAT(compute_metrics(800e12, 2, 1000e12),
              ElementsAre(Pair("flops_per_second", 400e12), Pair("mfu", 0.4)));
  EXPECT_THAT(compute_metrics(800e12, 2, 1000e12, 4),
              ElementsAre(Pair("flops_per_second", 400e12), Pair("mfu", 0.1)));
  EXPECT_THAT(compute_metrics(6, 2, {}), ElementsAre(Pair("flops_per_second", 3)));
}

TEST(GpuMetrics, AreThoseThatAreKnown) {
  EXPECT_THAT(gpu_metrics({}), IsEmpty());
  EXPECT_THAT(gpu_metrics({.utilization = 0.9, .memory = 5e9, .power = 600.0, .energy = 2e4}),
              ElementsAre(Pair("gpu_utilization", 0.9), Pair("gpu_memory_bytes", 5e9),
                          Pair("gpu_power_watts", 600), Pair("gpu_energy_joules", 2e4)));
}

// A status has room for this number; further metrics would be dropped silently.
TEST(MetricNames, AreNotMoreThanAStatusHolds) {
  constexpr std::size_t kImagesOrTokens = 1;
  constexpr std::size_t kOfDivergence = 1;  // such a report has few others
  EXPECT_LE(std::size(metric::kAll) - kImagesOrTokens - kOfDivergence, api::kMaxReportMetrics);
}

TEST(MetricNames, AreExplained) {
  const std::string text = *read_file(source_path("docs/trainer.md"));
  std::set<std::string> seen;
  for (const std::string name : metric::kAll) {
    EXPECT_TRUE(seen.insert(name).second) << name << " twice";
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace fettle::trainer
