// The last block of a grid: exactly one block ends after all others have written, in every launch
// or replay of a kernel, and the sum is the same whichever block it is.
#include "kernels/cuda/device_code/last_block.cuh"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/philox.h"
#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/errors.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/emulator/emulator.h"
#include "kernels/linear/bias_gradient.h"

namespace fettle::kernels::cuda {
namespace {

using Floats = std::vector<float>;

// ---- The helper --------------------------------------------------------------------------------

// Each block writes first + its number; the last block sums these numbers.
__global__ void add_numbers(int first, int* of_blocks, unsigned* counter, int* lasts, int* sum) {
  const auto block = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 33) of_blocks[block] = first + block;
  if (!is_last_block(gridDim.x, counter)) return;
  atomicAdd(lasts, 1);
  const int all = sum_as_block_of<64>(static_cast<int>(gridDim.x),
                                      [of_blocks](int i) { return __ldcg(of_blocks + i); });
  if (threadIdx.x == 5) *sum = all;
}

// Runs the test in every order of blocks, then restores the default order.
void in_every_order(const std::function<void()>& test) {
  for (const auto order : {emulator::Order::kRising, emulator::Order::kFalling,
                           emulator::Order::kShuffled, emulator::Order::kInterleaved}) {
    emulator::set_order(order, 3);
    test();
  }
  emulator::set_order(emulator::Order::kRising);
}

TEST(LastBlock, IsUniqueAndReadsTheWritesOfAllBlocks) {
  in_every_order([] {
    unsigned counter = 0;
    for (const int blocks : {1, 2, 3, 64, 65, 200}) {
      for (int first = 1; first < 4; ++first) {  // so a stale number of an earlier launch is wrong
        std::vector<int> of_blocks(static_cast<std::size_t>(blocks));
        int lasts = 0, sum = 0;
        launch(nullptr, {.blocks = static_cast<unsigned>(blocks), .threads = 96}, add_numbers,
               first * 1000, of_blocks.data(), &counter, &lasts, &sum);
        must_succeed(cudaStreamSynchronize(nullptr));
        EXPECT_EQ(lasts, 96) << "all threads of one block";
        EXPECT_EQ(sum, blocks * first * 1000 + blocks * (blocks - 1) / 2);
        EXPECT_EQ(counter, 0U);
      }
    }
  });
}

__global__ void sum_numbers(int count, const float* values, float* with_helper, float* plain) {
  const float all = sum_as_block_of<256>(count, [values](int i) { return values[i]; });
  if (threadIdx.x == 0) *with_helper = all;
  if (plain == nullptr) return;
  float mine = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 256) mine += values[i];
  mine = block_sum(mine);
  if (threadIdx.x == 0) *plain = mine;
}

TEST(LastBlock, SumsInTheOrderOfABlockOfAnotherSize) {
  Random random(1);
  Floats values(1000);
  for (float& value : values) value = static_cast<float>(random.normal());
  for (const int count : {0, 1, 31, 256, 257, 1000}) {
    float expected = -1, found = -1;
    launch(nullptr, {.threads = 256}, sum_numbers, count, values.data(), &found, &expected);
    must_succeed(cudaStreamSynchronize(nullptr));
    EXPECT_EQ(found, expected);
    for (const unsigned threads : {32U, 96U, 128U, 512U}) {
      launch(nullptr, {.threads = threads}, sum_numbers, count, values.data(), &found, nullptr);
      must_succeed(cudaStreamSynchronize(nullptr));
      EXPECT_EQ(found, expected) << threads << " threads, " << count << " values";
    }
  }
}

// ---- Operations that end with a last block -----------------------------------------------------

Floats random_floats(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// Runs an operation once, by `call`, on random numbers; returns its sums.
using Call = std::function<void(const std::function<void()>&)>;
using Outcome = std::function<std::vector<double>(Device&, std::uint64_t seed, const Call&)>;

void at_once(const std::function<void()>& work) { work(); }

// Repeated launches and replays on one device give the outcome of a fresh device. The numbers
// differ each time, so that leftovers of a call in the workspace are wrong for the next.
void expect_the_same_every_time(const Outcome& outcome) {
  std::vector<std::vector<double>> expected;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto fresh = std::move(Device::open()).value();
    expected.push_back(outcome(*fresh, seed, at_once));
  }
  in_every_order([&] {
    const auto device = std::move(Device::open()).value();
    const Call replayed = [&](const std::function<void()>& work) {
      capture(device->stream(), work)->launch();
    };
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      EXPECT_EQ(outcome(*device, seed, at_once), expected[seed]);
      EXPECT_EQ(outcome(*device, seed, replayed), expected[seed]) << "recorded";
    }
    EXPECT_EQ(*device->counters(1), 0U);
  });
}

Outcome loss(std::int64_t samples, std::int64_t classes) {
  return [=](Device& device, std::uint64_t seed, const Call& call) -> std::vector<double> {
    const auto op = cuda_softmax_cross_entropy(device, classes, DataType::kFloat32);
    const Floats logits = random_floats(samples * classes, seed);
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(samples), 1);
    LossSums sums;
    call([&] { op->run(samples, logits.data(), labels.data(), {}, &sums, nullptr); });
    must_succeed(cudaStreamSynchronize(device.stream()));
    EXPECT_EQ(sums.samples, samples);
    return {sums.loss, static_cast<double>(sums.correct)};
  };
}

Outcome squares(std::int64_t count) {
  return [=](Device& device, std::uint64_t seed, const Call& call) -> std::vector<double> {
    const Floats values = random_floats(count, seed);
    double sum = -1;
    (void)device.scratch(kSquaresScratch);
    (void)device.counters(1);
    call([&] { cuda_sum_of_squares(device, count, values.data(), &sum); });
    must_succeed(cudaStreamSynchronize(device.stream()));
    return {sum};
  };
}

Outcome bias_gradient(std::int64_t rows, std::int64_t channels) {
  return [=](Device& device, std::uint64_t seed, const Call& call) -> std::vector<double> {
    BiasGradient op(device, DataType::kFloat32, channels, /*bias=*/true, /*relu=*/false);
    EXPECT_TRUE(op.reserve(rows).ok());
    Floats dy = random_floats(rows * channels, seed), gradient(static_cast<std::size_t>(channels));
    call([&] { op.mask_and_sum(rows, nullptr, dy.data(), gradient.data()); });
    must_succeed(cudaStreamSynchronize(device.stream()));
    return {gradient.begin(), gradient.end()};
  };
}

TEST(LastBlock, TheLossIsTheSameEveryTime) {
  expect_the_same_every_time(loss(3, 5));     // one block of warps
  expect_the_same_every_time(loss(60, 5));    // many blocks of warps
  expect_the_same_every_time(loss(1, 1100));  // one block, one row
  expect_the_same_every_time(loss(9, 1100));  // a block a row
}

TEST(LastBlock, TheSumOfSquaresIsTheSameEveryTime) {
  for (const std::int64_t count : {0, 1, 4096, 4097, 50'000}) {
    expect_the_same_every_time(squares(count));
  }
}

// Slices of rows, and blocks side by side, each with a counter.
TEST(LastBlock, TheGradientOfABiasIsTheSameEveryTime) {
  expect_the_same_every_time(bias_gradient(2, 5));
  expect_the_same_every_time(bias_gradient(1000, 5));
  expect_the_same_every_time(bias_gradient(2, 300));
  expect_the_same_every_time(bias_gradient(500, 300));
  expect_the_same_every_time(bias_gradient(500, 301));
}

}  // namespace
}  // namespace fettle::kernels::cuda
