// The backend's device and timeline, on the emulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "kernels/device_array.h"

namespace fettle::kernels {
namespace {

TEST(CudaProfiling, NamesItsDevice) {
  const auto backend = std::move(cuda_backend()).value();
  EXPECT_EQ(backend->device().name, "emulated GPU");
  EXPECT_EQ(backend->device().uuid, "00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(backend->ranges(), nullptr) << "no tool watches an emulator";
}

TEST(CudaProfiling, ATimelineSeesThatWorkTakesTimeOnceItIsDone) {
  const auto backend = std::move(cuda_backend()).value();
  auto array = std::move(DeviceArray<float>::create(*backend, 1 << 20)).value();
  const auto timeline = backend->timeline();
  EXPECT_EQ(timeline->mark(), 1);
  for (int i = 0; i < 8; ++i) backend->copy(array.data(), array.data() + (1 << 19), 1 << 21);
  EXPECT_EQ(timeline->mark(), 2);
  const std::vector<double> seconds = timeline->seconds();
  ASSERT_EQ(seconds.size(), 3U);
  EXPECT_EQ(seconds[0], 0);
  EXPECT_TRUE(std::is_sorted(seconds.begin(), seconds.end()));
  EXPECT_GT(seconds[2], seconds[1]);
}

TEST(CudaProfilingDeathTest, AGraphHasNoTimesOfItsOwn) {
  const auto backend = std::move(cuda_backend()).value();
  EXPECT_DEATH(backend->capture([&] { (void)backend->timeline(); }), "must neither allocate");
}

}  // namespace
}  // namespace fettle::kernels
