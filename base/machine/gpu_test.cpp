#include "base/machine/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_paths.h"

namespace fettle::machine {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(Gpus, WithoutADriverThereAreNoneAndItSaysWhy) {
  const Gpus gpus = find_gpus("libnvidia-ml-that-is-not-there.so.1");
  EXPECT_TRUE(gpus.all.empty());
  EXPECT_THAT(gpus.missing, testing::HasSubstr("there is no NVIDIA driver"));
}

TEST(Gpus, AreReadFromTheDriver) {
  const Gpus gpus = find_gpus(program_path("../tests/fake_nvml/libnvidia-ml.so.1"));
  EXPECT_EQ(gpus.missing, "");
  EXPECT_EQ(gpus.driver, "580.65.06");
  EXPECT_EQ(gpus.cuda, 13000);
  ASSERT_EQ(gpus.all.size(), 2U);
  const Gpu& large = gpus.all[0];
  EXPECT_EQ(large.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(large.uuid, "GPU-1");
  EXPECT_EQ(large.pci, "00000000:18:00.0");
  EXPECT_EQ(large.major, 9);
  EXPECT_EQ(large.memory, 80 * kGiB);
  EXPECT_EQ(large.memory_free, 79 * kGiB);
  EXPECT_EQ(large.nvlinks, 18);
  EXPECT_EQ(large.power_limit, 700);
  EXPECT_EQ(large.mig, true);
  ASSERT_EQ(large.instances.size(), 2U);
  EXPECT_EQ(large.instances[1].name, "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
  EXPECT_EQ(large.instances[1].memory, 40 * kGiB);
  const Gpu& old = gpus.all[1];
  EXPECT_EQ(old.mig, std::nullopt);
  EXPECT_TRUE(old.instances.empty());
  EXPECT_EQ(old.nvlinks, 0);
}

TEST(GpuPeaks, AreFoundByTheNameAsAWhole) {
  const struct {
    const char* name;
    double memory;  // 0: not in the table
  } cases[] = {
      {"NVIDIA H100 80GB HBM3", 3.35e12},
      {"NVIDIA H100 PCIe", 2.0e12},
      {"NVIDIA H200", 4.8e12},
      {"NVIDIA B200", 8.0e12},
      {"NVIDIA A100-SXM4-80GB", 2.039e12},
      {"NVIDIA A100-SXM4-40GB", 1.555e12},
      {"NVIDIA L4", 0.3e12},
      {"NVIDIA L40", 0},
      {"NVIDIA A10G", 0},
      {"NVIDIA H100 80GB HBM3 MIG 3g.40gb", 0},
      {"", 0},
  };
  for (const auto& c : cases) {
    const auto peak = peak_of_gpu(c.name);
    EXPECT_EQ(peak ? peak->memory : 0, c.memory) << c.name;
  }
}

// Checks for mistakes that make a share of the peak look too good or too bad.
TEST(GpuPeaks, AreDenseAndTellTf32FromFp32) {
  const auto h100 = peak_of_gpu("NVIDIA H100 80GB HBM3");
  ASSERT_TRUE(h100.has_value());
  EXPECT_EQ(h100->bits16, 989.4e12) << "not 1979, which is for matrices with half of it zeros";
  EXPECT_EQ(h100->fp32, 494.7e12);
  EXPECT_EQ(h100->fp32_exact, 66.9e12);
}

}  // namespace
}  // namespace fettle::machine
