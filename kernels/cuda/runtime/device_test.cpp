// A GPU opened for a backend: its errors, and its memory. On the emulator, whose machine the tests
// choose.
#include "kernels/cuda/runtime/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "kernels/cuda/runtime/errors.h"
#include "kernels/cuda/runtime/event.h"
#include "kernels/cuda/runtime/staging.h"
#include "kernels/cuda/testing/on_machine.h"

namespace fettle::kernels::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_on(const emulator::Machine& machine) {
  const OnMachine on(machine);
  const auto device = Device::open();
  return device.ok() ? "" : device.error().message;
}

TEST(Device, SaysWhyThereIsNone) {
  EXPECT_THAT(error_on({.count_error = cudaErrorNoDevice, .devices = 0}),
              AllOf(HasSubstr("no GPU"), HasSubstr("CUDA_VISIBLE_DEVICES")));
  EXPECT_THAT(error_on({.devices = 0}), HasSubstr("no GPU"));
  EXPECT_THAT(
      error_on({.count_error = cudaErrorInsufficientDriver, .devices = 0, .driver_version = 0}),
      HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(error_on({.count_error = cudaErrorInsufficientDriver, .driver_version = 12040}),
              AllOf(HasSubstr("driver here is for CUDA 12.4"), HasSubstr("expected 13.0")));
  EXPECT_THAT(error_on({.major = 7, .minor = 5}),
              AllOf(HasSubstr("compute capability 7.5"), HasSubstr("this build is for")));
}

TEST(Device, SaysThatItCouldNotBeAsked) {
  EXPECT_THAT(error_on({.properties_error = cudaErrorInvalidValue}),
              AllOf(HasSubstr("the GPU cannot be used: "), HasSubstr("(CUDA error 1)")));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST(EventDeathTest, OneWithoutTimeHasNoSeconds) {
  const auto device = std::move(Device::open()).value();
  Event timed, other, without = Event::without_time();
  for (Event* event : {&timed, &other, &without}) event->record(device->stream());
  without.synchronize();
  EXPECT_GE(other.seconds_since(timed), 0);
  EXPECT_DEATH(without.seconds_since(timed), "cudaErrorInvalidResourceHandle");
}

TEST(Device, MemoryIsZeroAndAligned) {
  const auto device = std::move(Device::open()).value();
  const auto memory = std::move(device->allocate(1000)).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 256, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(static_cast<char*>(memory->data())[i], 0);
}

TEST(Device, CountsTheMemoryThatIsUsed) {
  const auto device = std::move(Device::open()).value();
  {
    const auto first = device->allocate(1000), second = device->allocate(1);
    EXPECT_EQ(device->used(), 1024 + 256);
  }
  EXPECT_EQ(device->used(), 0);
  EXPECT_EQ(device->peak(), 1024 + 256);
}

TEST(Device, SaysHowMuchMemoryIsMissing) {
  const OnMachine on({.memory = std::size_t{8} << 20});
  const auto device = std::move(Device::open()).value();
  const auto some = device->allocate(std::int64_t{3} << 20);
  ASSERT_TRUE(some.ok());
  const auto more = device->allocate(std::int64_t{6} << 20);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(more.error().message,
              AllOf(HasSubstr("no 6.0 MiB more"), HasSubstr("of its 8.0 MiB, 5.0 MiB are free"),
                    HasSubstr("3.0 MiB are in use"), HasSubstr("training.maxPerWorker")));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST(Device, ScratchGrowsAndKeepsTheBlocksOfGraphs) {
  const auto device = std::move(Device::open()).value();
  ASSERT_TRUE(device->reserve_scratch(1000).ok());
  void* const first = device->scratch(500);
  EXPECT_EQ(device->scratch(1000), first);
  ASSERT_TRUE(device->reserve_scratch(5000).ok());
  EXPECT_NE(device->scratch(1000), first);
  EXPECT_EQ(static_cast<char*>(first)[999], 0) << "still there";
}

TEST(Device, CountersAreZeroAndKeptLikewise) {
  const auto device = std::move(Device::open()).value();
  ASSERT_TRUE(device->reserve_counters(3).ok());
  unsigned* const first = device->counters(1);
  EXPECT_EQ(device->counters(3), first);
  unsigned* const more = device->counters(100);
  EXPECT_NE(more, first);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(more[i], 0U);
  EXPECT_EQ(first[2], 0U) << "still there";
}

// In a capture, each launch of the graph would clear a piece of the pool.
TEST(DeviceDeathTest, NothingGrowsWhileAGraphIsCaptured) {
  const auto device = std::move(Device::open()).value();
  ASSERT_TRUE(device->reserve_scratch(1000).ok());
  const auto captured = [&](std::int64_t bytes) {
    must_succeed(cudaStreamBeginCapture(device->stream(), cudaStreamCaptureModeThreadLocal));
    EXPECT_NE(device->scratch(bytes), nullptr);
    cudaGraph_t graph = nullptr;
    must_succeed(cudaStreamEndCapture(device->stream(), &graph));
    cudaGraphDestroy(graph);
  };
  captured(1000);
  EXPECT_DEATH(captured(1001), "what is captured must have run once before");
}

// So it has grown before the graph is captured.
TEST(Device, ABranchHasItsWorkspaceOutsideOfGraphsToo) {
  ::setenv("FETTLE_CUDA_BRANCHES", "1", 1);
  const auto device = std::move(Device::open()).value();
  ::unsetenv("FETTLE_CUDA_BRANCHES");
  void *of_branch = nullptr, *other = nullptr;
  cudaStream_t stream = nullptr;
  const auto run = [&] {
    device->run_beside(
        [&] {
          of_branch = device->scratch(5000);
          stream = device->stream();
        },
        [&] { other = device->scratch(1000); });
  };
  run();
  EXPECT_NE(of_branch, other);
  EXPECT_EQ(stream, device->stream()) << "a fork would cost more than it saves";
  void* const before = of_branch;
  must_succeed(cudaStreamBeginCapture(device->stream(), cudaStreamCaptureModeThreadLocal));
  run();
  EXPECT_EQ(of_branch, before);
  EXPECT_NE(stream, device->stream());
  cudaGraph_t graph = nullptr;
  must_succeed(cudaStreamEndCapture(device->stream(), &graph));
  cudaGraphDestroy(graph);
}

// ---- Staging -----------------------------------------------------------------------------------

TEST(Staging, PinsLittleForLargeUploads) {
  const auto device = std::move(Device::open()).value();
  constexpr std::int64_t kBytes = (std::int64_t{50} << 20) + 12345;
  std::vector<unsigned char> from(kBytes), found(kBytes);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i % 251);
  const auto to = std::move(device->allocate(kBytes)).value();
  Staging staging;
  staging.upload(from.data(), to->data(), kBytes, device->stream());
  ASSERT_EQ(cudaStreamSynchronize(device->stream()), cudaSuccess);
  must_succeed(cudaMemcpy(found.data(), to->data(), from.size(), cudaMemcpyDeviceToHost));
  EXPECT_TRUE(found == from);
  EXPECT_LE(staging.pinned_bytes(), std::int64_t{40} << 20);
}

// ---- Measuring ---------------------------------------------------------------------------------

TEST(Device, MeasuresWithoutAllocating) {
  ::setenv("FETTLE_CUDA_BRANCHES", "1", 1);
  const auto device = std::move(Device::open()).value();
  ::unsetenv("FETTLE_CUDA_BRANCHES");
  const std::int64_t before = device->used();
  device->set_measuring(true);
  EXPECT_EQ((*device->allocate(1000))->data(), nullptr);
  ASSERT_TRUE(device->allocate(1).ok());
  ASSERT_TRUE(device->reserve_scratch(100'000).ok());
  ASSERT_TRUE(device->reserve_scratch(5000).ok());
  EXPECT_NE(device->scratch(10), nullptr) << "some read its alignment";
  EXPECT_EQ(device->measured().own, 1024 + 256);
  EXPECT_EQ(device->measured().shared, 100'096);
  ASSERT_TRUE(device->reserve_branch_scratch(700).ok());
  EXPECT_EQ(device->measured().branch, 768);
  EXPECT_EQ(device->used(), before);
  device->set_measuring(false);
  EXPECT_NE((*device->allocate(1000))->data(), nullptr);
}

// ---- Pieces ------------------------------------------------------------------------------------

TEST(Pool, CutsBlocksFromPieces) {
  std::size_t before = 0, after = 0, total = 0;
  cudaMemGetInfo(&before, &total);
  Pool pool(1 << 20);
  auto* const a = static_cast<char*>(std::move(pool.take(100)).value());
  auto* const b = static_cast<char*>(std::move(pool.take(300)).value());
  auto* const c = static_cast<char*>(std::move(pool.take(256)).value());
  EXPECT_EQ(b - a, 256);
  EXPECT_EQ(c - b, 512);
  cudaMemGetInfo(&after, &total);
  EXPECT_EQ(before - after, 1 << 20) << "one piece";
  EXPECT_EQ(pool.used(), 1024);
  for (void* const block : {a, b, c}) pool.give_back(block);
}

TEST(Pool, JoinsNeighboursAndTakesTheBestFit) {
  Pool pool(4096);
  void* blocks[16];
  for (void*& block : blocks) block = std::move(pool.take(256)).value();
  for (const int i : {2, 9, 10, 11, 3}) pool.give_back(blocks[i]);  // free: 512 at 2, 768 at 9
  EXPECT_EQ(std::move(pool.take(512)).value(), blocks[2]);
  EXPECT_EQ(std::move(pool.take(768)).value(), blocks[9]);
  for (const int i : {0, 1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15}) pool.give_back(blocks[i]);
  EXPECT_EQ(std::move(pool.take(4096)).value(), blocks[0]) << "all are one again";
  pool.give_back(blocks[0]);
  EXPECT_EQ(pool.peak(), 4096);
}

TEST(Pool, TakesABlockLargerThanAPiece) {
  Pool pool(4096);
  void* const block = std::move(pool.take(100000)).value();
  EXPECT_EQ(pool.used(), 100096);
  pool.give_back(block);
}

// The last piece may be smaller.
TEST(Pool, UsesTheRestOfTheDevice) {
  const OnMachine on({.memory = 10 << 10});
  Pool pool(8 << 10);
  void* const first = std::move(pool.take(8 << 10)).value();
  void* const second = std::move(pool.take(2 << 10)).value();
  EXPECT_FALSE(pool.take(1).ok());
  pool.give_back(first);
  pool.give_back(second);
}

// Takes at most its share of a card that others use too, however much is free.
TEST(Pool, KeepsToItsShare) {
  Pool pool(4 << 10, 10 << 10);
  void* const first = std::move(pool.take(8 << 10)).value();
  EXPECT_EQ(pool.available(), 2 << 10);
  const auto beyond = pool.take(3 << 10);
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.error().message, HasSubstr("out of memory: this trial's part of the GPU"));
  void* const last = std::move(pool.take(2 << 10)).value();
  EXPECT_EQ(pool.available(), 0);
  pool.give_back(first);
  EXPECT_EQ(pool.available(), 8 << 10) << "what was given back is its own";
  pool.give_back(last);
}

TEST(Pool, GivesBackPiecesThatAreFreeAsAWhole) {
  std::size_t before = 0, after = 0, total = 0;
  Pool pool(4096);
  void* const kept = std::move(pool.take(256)).value();
  cudaMemGetInfo(&before, &total);
  void* const large = std::move(pool.take(100'096)).value();
  pool.release_unused();
  cudaMemGetInfo(&after, &total);
  EXPECT_EQ(before - after, 100'096U) << "a block of it is out";
  pool.give_back(large);
  pool.release_unused();
  cudaMemGetInfo(&after, &total);
  EXPECT_EQ(before, after);
  void* const again = std::move(pool.take(4096 - 256)).value();
  EXPECT_EQ(static_cast<char*>(again) - static_cast<char*>(kept), 256) << "the rest of its piece";
  pool.give_back(again);
  pool.give_back(kept);
}

TEST(Pool, ReleasedMemoryCountsForItsShareAgain) {
  Pool pool(4096, 8 << 10);
  pool.give_back(std::move(pool.take(8 << 10)).value());
  EXPECT_EQ(pool.available(), 8 << 10) << "in the piece";
  pool.release_unused();
  EXPECT_EQ(pool.available(), 8 << 10) << "of the device";
  void* const again = std::move(pool.take(8 << 10)).value();
  pool.give_back(again);
}

TEST(Pool, KeepsToItsShareWithoutPiecesToo) {
  Pool pool(0, 4 << 10);
  void* const block = std::move(pool.take(4 << 10)).value();
  EXPECT_FALSE(pool.take(256).ok());
  pool.give_back(block);
  void* const again = std::move(pool.take(4 << 10)).value();
  pool.give_back(again);
}

class SharedDevice : public ::testing::Test {
 protected:
  ~SharedDevice() override { unsetenv("FETTLE_GPU_MEMORY"); }
  static Result<std::unique_ptr<Device>> open_with(const char* mebibytes) {
    setenv("FETTLE_GPU_MEMORY", mebibytes, 1);
    return Device::open();
  }
};

TEST_F(SharedDevice, HasItsShareOfMemoryLessTheContext) {
  const auto device = open_with("1024");
  ASSERT_TRUE(device.ok()) << device.error().message;
  EXPECT_EQ((*device)->available(), std::int64_t{512} << 20);
}

TEST_F(SharedDevice, ExplainsAnInvalidShare) {
  for (const char* const text : {"20Gi", "-5", "512", "99999999999999"}) {
    const auto device = open_with(text);
    ASSERT_FALSE(device.ok()) << text;
    EXPECT_THAT(device.error().message, HasSubstr("FETTLE_GPU_MEMORY is"));
  }
}

}  // namespace
}  // namespace fettle::kernels::cuda
