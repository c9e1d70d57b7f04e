#include "base/machine/cuda_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::machine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Gpu gpu(int major, int minor) {
  Gpu gpu;
  gpu.name = "NVIDIA H100 80GB HBM3";
  gpu.major = major;
  gpu.minor = minor;
  return gpu;
}

Gpus with_driver(const char* driver, int cuda) {
  Gpus gpus;
  gpus.driver = driver;
  gpus.cuda = cuda;
  gpus.all = {gpu(9, 0)};
  return gpus;
}

TEST(CudaSupport, NeedsADriverForCuda13) {
  EXPECT_EQ(why_no_driver(with_driver("580.65.06", 13000)), "");
  EXPECT_EQ(why_no_driver(with_driver("590.10", 13010)), "");
  EXPECT_THAT(why_no_driver(with_driver("570.124.06", 12080)),
              AllOf(HasSubstr("driver 570.124.06 is too old"), HasSubstr("needs 580 or newer"),
                    HasSubstr("update the driver")));
  Gpus none;
  none.missing = "no driver";
  EXPECT_EQ(why_no_driver(none), "no driver");
}

TEST(CudaSupport, KnowsTheSupportedCards) {
  for (const auto& [major, minor] : {std::pair{8, 0}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {12, 0}}) {
    EXPECT_EQ(why_no_gpu(gpu(major, minor)), "") << major << "." << minor;
  }
  for (const auto& [major, minor] : {std::pair{7, 0}, {7, 5}, {13, 0}}) {
    EXPECT_THAT(why_no_gpu(gpu(major, minor)),
                AllOf(HasSubstr(std::to_string(major) + "." + std::to_string(minor)),
                      HasSubstr("only 8.0 to 12.x"), HasSubstr("train on the CPU")));
  }
}

TEST(CudaSupport, ReportsWasteOnlyWithAGpu) {
  EXPECT_EQ(unused_gpu_warning({}, "no GPU"), "");
  Gpus gpus = with_driver("570.124.06", 12080);
  EXPECT_THAT(unused_gpu_warning(gpus, "the driver is too old"),
              AllOf(HasSubstr("has a GPU (NVIDIA H100 80GB HBM3)"), HasSubstr("runs on the CPU"),
                    HasSubstr("the driver is too old")));
  gpus.all.push_back(gpu(9, 0));
  EXPECT_THAT(unused_gpu_warning(gpus, "x"), HasSubstr("has 2 GPUs"));
}

}  // namespace
}  // namespace fettle::machine
