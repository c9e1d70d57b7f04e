// Timing kernels, on the emulator: its times mean nothing, but every configuration runs, and none
// changes a bit.
#include "kernels/backends/cuda/event_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/backends/cuda/workloads.h"
#include "kernels/emulator/emulator.h"

namespace fettle::kernels::cuda {
namespace {

using ::testing::HasSubstr;

// A few packs and an end, so that blocks of any size have something to do, or nothing.
constexpr std::int64_t kElements = 3001;

std::string why_not(KernelTimer& timer, const char* kernel, const LaunchConfig& config) {
  const auto time = timer.microseconds(kernel, config, kElements);
  return time.ok() ? "" : time.error().message;
}

TEST(EventTimer, SmallAndLargeBlocksOfEveryKernelGiveTheSameBits) {
  const auto timer = std::move(event_timer()).value();
  for (const TunableKernel& kernel : tunable_kernels()) {
    for (const unsigned threads : {32U, 96U, 512U}) {
      const LaunchConfig config{threads, kernel.goes_round() ? 1U : 0U};
      const auto time = timer->microseconds(kernel.name, config, kElements);
      ASSERT_TRUE(time.ok()) << time.error().message;
      EXPECT_GT(*time, 0) << kernel.name;
    }
  }
}

TEST(EventTimer, AWorkloadLeavesAResult) {
  const auto device = std::move(Device::open()).value();
  for (const TunableKernel& kernel : tunable_kernels()) {
    const auto work = make_workload(*device, kernel.name, kElements);
    ASSERT_TRUE(work.ok()) << work.error().message;
    const auto* const bytes = static_cast<const char*>(work->written);
    const std::vector<char> before(bytes, bytes + work->written_bytes);
    work->run();
    EXPECT_NE(std::vector<char>(bytes, bytes + work->written_bytes), before) << kernel.name;
  }
}

TEST(EventTimer, RefusesWhatAKernelDoesNotTake) {
  const auto timer = std::move(event_timer()).value();
  EXPECT_THAT(why_not(*timer, "relu/forward", {31, 0}), HasSubstr("a multiple of 32"));
  EXPECT_THAT(why_not(*timer, "relu/sideways", {32, 0}), HasSubstr("there is no kernel"));
}

TEST(EventTimer, SaysThatThereIsTooLittleMemory) {
  const auto before = emulator::set_machine({.memory = 16 << 10});
  const auto timer = std::move(event_timer()).value();
  EXPECT_THAT(why_not(*timer, "optimizer/update", {256, 8}), HasSubstr("MiB"));
  emulator::set_machine(before);
}

}  // namespace
}  // namespace fettle::kernels::cuda
