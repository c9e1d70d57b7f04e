// The emulator: kernels behave as on a GPU, and it detects errors that a GPU does not forgive.
#include "kernels/emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/reduce.h"

namespace fettle::kernels::cuda {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Runs the test in an order of threads, then restores the default order.
class InOrder {
 public:
  explicit InOrder(emulator::Order order, std::uint64_t seed = 0) {
    emulator::set_order(order, seed);
  }
  ~InOrder() { emulator::set_order(emulator::Order::kRising); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;
};

std::vector<int> counting(int count, int first = 0) {
  std::vector<int> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = first + i;
  return values;
}

__global__ void say_where(int* out, int base) {
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  out[block * blockDim.x + threadIdx.x] = base + static_cast<int>(block * 100 + threadIdx.x);
}

TEST(Emulator, RunsEveryThreadOfEveryBlock) {
  std::vector<int> out(8);
  launch(nullptr, {.blocks = 2, .blocks_y = 2, .threads = 2}, say_where, out.data(), 1000);
  EXPECT_THAT(out, ElementsAre(1000, 1001, 1100, 1101, 1200, 1201, 1300, 1301));
}

// ---- Barriers ----------------------------------------------------------------------------------

__global__ void reverse(int* values, bool waits) {
  __shared__ int copy[1024];
  copy[threadIdx.x] = values[threadIdx.x];
  if (waits) __syncthreads();
  values[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}

std::vector<int> reversed(bool waits, int first = 0) {
  std::vector<int> values = counting(256, first);
  launch(nullptr, {.threads = 256}, reverse, values.data(), waits);
  return values;
}

TEST(Emulator, WithItsBarriersAKernelIsTheSameInEveryOrder) {
  std::vector<int> expected = counting(256);
  std::reverse(expected.begin(), expected.end());
  for (const auto order :
       {emulator::Order::kRising, emulator::Order::kFalling, emulator::Order::kShuffled}) {
    const InOrder in_order(order, 7);
    EXPECT_EQ(reversed(true), expected);
  }
}

TEST(Emulator, AForgottenBarrierShowsInTheOrderOfThreads) {
  const std::vector<int> rising = reversed(false, 1000);
  const InOrder in_order(emulator::Order::kFalling);
  EXPECT_NE(reversed(false, 2000), rising);
}

__global__ void count_threads(int* out) {
  const int count = __syncthreads_count(threadIdx.x < 40 ? 1 : 0);
  const int any = __syncthreads_or(threadIdx.x == 3 ? 1 : 0);
  const int all = __syncthreads_and(threadIdx.x == 3 ? 1 : 0);
  if (threadIdx.x == 0) {
    out[0] = count;
    out[1] = any;
    out[2] = all;
  }
}

TEST(Emulator, BarriersCount) {
  std::vector<int> out(3);
  launch(nullptr, {.threads = 64}, count_threads, out.data());
  EXPECT_THAT(out, ElementsAre(40, 1, 0));
}

__global__ void leave_early(int* out) {
  if (threadIdx.x >= 10) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

TEST(Emulator, ABarrierWaitsOnlyForLivingThreads) {
  std::vector<int> out(10);
  launch(nullptr, {.threads = 64}, leave_early, out.data());
  EXPECT_THAT(out, Each(1));
}

__global__ void wait_apart() {
  if (threadIdx.x < 32) {  // NOLINT(bugprone-branch-clone): tests two barriers
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(EmulatorDeathTest, ThreadsThatWaitAtDifferentBarriersAreAnError) {
  EXPECT_DEATH(launch(nullptr, {.threads = 64}, wait_apart),
               "kernel launched at .*emulator_test.cpp.*threads wait for others that wait "
               "elsewhere:\n  32 \\(thread 0 first\\) at a barrier, .*wait_apart");
}

// ---- Warps -------------------------------------------------------------------------------------

struct Shuffled {
  int from_five, up, down, exchanged, within_eight;
};

__global__ void shuffle_all(Shuffled* out) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane] = {__shfl_sync(kAllLanes, lane, 5), __shfl_up_sync(kAllLanes, lane, 3),
               __shfl_down_sync(kAllLanes, lane, 3), __shfl_xor_sync(kAllLanes, lane, 16),
               __shfl_down_sync(kAllLanes, lane, 1, 8)};
}

TEST(Emulator, ShufflesWithinAWarpOf32) {
  std::vector<Shuffled> out(64);
  launch(nullptr, {.threads = 64}, shuffle_all, out.data());
  for (int i = 0; i < 64; ++i) {
    const Shuffled& of = out[static_cast<std::size_t>(i)];
    const int lane = i % 32, first = i - lane;
    EXPECT_EQ(of.from_five, first + 5);
    EXPECT_EQ(of.up, lane < 3 ? i : i - 3);
    EXPECT_EQ(of.down, lane > 28 ? i : i + 3);
    EXPECT_EQ(of.exchanged, first + (lane ^ 16));
    EXPECT_EQ(of.within_eight, lane % 8 == 7 ? i : i + 1);
  }
}

__global__ void vote(unsigned* out) {
  const unsigned lane = threadIdx.x;
  const unsigned odd = 0xAAAAAAAA;
  unsigned ballot = 0;
  if (lane % 2 == 1) ballot = __ballot_sync(odd, lane < 8 ? 1 : 0);
  __syncwarp();
  if (lane == 1) {
    out[0] = ballot;
  }
  const int any = __any_sync(kAllLanes, lane == 31 ? 1 : 0);
  const int all = __all_sync(kAllLanes, lane == 31 ? 1 : 0);
  if (lane == 0) {
    out[1] = static_cast<unsigned>(any);
    out[2] = static_cast<unsigned>(all);
  }
}

TEST(Emulator, VotesOfTheLanesInTheMask) {
  std::vector<unsigned> out(3);
  launch(nullptr, {.threads = 32}, vote, out.data());
  EXPECT_THAT(out, ElementsAre(0xAAU, 1U, 0U));
}

__global__ void read_absent_lane(float* out) {
  const float value = __shfl_down_sync(kAllLanes, 1.0F, 8);
  out[threadIdx.x] = value;
}

TEST(Emulator, ALaneThatIsNotThereGivesNaN) {
  std::vector<float> out(16);
  launch(nullptr, {.threads = 16}, read_absent_lane, out.data());
  EXPECT_EQ(out[7], 1);
  EXPECT_TRUE(std::isnan(out[8]));
}

__global__ void shuffle_in_half_a_warp(int* out) {
  int value = 0;
  if (threadIdx.x < 16) value = __shfl_sync(kAllLanes, 1, 0);
  __syncthreads();
  out[threadIdx.x] = value;
}

TEST(EmulatorDeathTest, AWarpOperationWithoutALaneOfItsMaskIsAnError) {
  std::vector<int> out(32);
  EXPECT_DEATH(launch(nullptr, {.threads = 32}, shuffle_in_half_a_warp, out.data()),
               "16 \\(thread 0 first\\) at a warp operation, mask ffffffff, .*\n.*"
               "16 \\(thread 16 first\\) at a barrier");
}

__global__ void shuffle_as_another(int* out) {
  out[threadIdx.x] = __shfl_sync(0xFFFE, 1, 1);  // lane 0 is not in the mask
}

TEST(EmulatorDeathTest, AMaskWithoutTheCallerIsAnError) {
  std::vector<int> out(16);
  EXPECT_DEATH(launch(nullptr, {.threads = 16}, shuffle_as_another, out.data()),
               "does not name the lane that calls it");
}

// ---- Reductions and atomics --------------------------------------------------------------------

__global__ void sum_block(const float* in, float* sum, float* largest) {
  const float first = block_sum(in[threadIdx.x]);
  const float second = block_sum(2 * in[threadIdx.x]);
  sum[threadIdx.x] = first + second;
  largest[threadIdx.x] = block_max(in[threadIdx.x], -1.0F);
}

TEST(Emulator, EveryThreadGetsTheSumOfItsBlockInEveryOrder) {
  std::vector<float> in(1024), sum(1024), largest(1024);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = 1.0F / static_cast<float>(i + 1);
  launch(nullptr, {.threads = 1024}, sum_block, in.data(), sum.data(), largest.data());
  EXPECT_NEAR(sum[0], 3 * 7.509175, 1e-4);
  EXPECT_THAT(sum, Each(sum[0]));
  EXPECT_THAT(largest, Each(1.0F));
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const InOrder in_order(emulator::Order::kShuffled, seed);
    std::vector<float> again(1024);
    launch(nullptr, {.threads = 1024}, sum_block, in.data(), again.data(), largest.data());
    EXPECT_EQ(again, sum);
  }
}

__global__ void count_up(int* count, float* sum, int* largest) {
  atomicAdd(count, 1);
  atomicAdd(sum, 0.5F);
  atomicMax(largest, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

TEST(Emulator, AtomicsSeeEveryThread) {
  int count = 0, largest = 0;
  float sum = 0;
  launch(nullptr, {.blocks = 3, .threads = 100}, count_up, &count, &sum, &largest);
  EXPECT_EQ(count, 300);
  EXPECT_EQ(sum, 150);
  EXPECT_EQ(largest, 299);
}

__global__ void count_round(unsigned* count, unsigned* found) {
  found[blockIdx.x] = atomicInc(count, 2);
}

TEST(Emulator, AnIncrementStartsAgainBehindItsLimit) {
  unsigned count = 0;
  std::vector<unsigned> found(7);
  launch(nullptr, {.blocks = 7, .threads = 1}, count_round, &count, found.data());
  EXPECT_THAT(found, ElementsAre(0, 1, 2, 0, 1, 2, 0));
  EXPECT_EQ(count, 1U);
  count = 5;  // beyond it already
  launch(nullptr, {.threads = 1}, count_round, &count, found.data());
  EXPECT_EQ(count, 0U);
}

// ---- Blocks ------------------------------------------------------------------------------------

// Adds each block's number without an atomic, although the other blocks run as well.
__global__ void add_in_turn(int* sum) {
  const int before = *sum;
  __syncthreads();
  if (threadIdx.x == 0) *sum = before + 1;
}

int added_in_turn() {
  int sum = 0;
  launch(nullptr, {.blocks = 8, .threads = 64}, add_in_turn, &sum);
  return sum;
}

// Counts its number as written before it writes it.
__global__ void count_too_early(int* numbers, unsigned* counter, int* sum) {
  __shared__ unsigned place;
  if (threadIdx.x == 0) place = atomicInc(counter, gridDim.x - 1);
  __syncthreads();
  if (threadIdx.x == 0) numbers[blockIdx.x] = 1;
  if (place != gridDim.x - 1 || threadIdx.x != 0) return;
  for (unsigned block = 0; block < gridDim.x; ++block) *sum += numbers[block];
}

int counted_too_early() {
  std::vector<int> numbers(8);
  unsigned counter = 0;
  int sum = 0;
  launch(nullptr, {.blocks = 8, .threads = 64}, count_too_early, numbers.data(), &counter, &sum);
  return sum;
}

// Correct only if blocks run one after the other, as in every order but `interleaved`.
struct Relying {
  const char* what;
  int (*outcome)();
};

TEST(Emulator, InterleavedBlocksRevealAKernelThatReliesOnOrder) {
  for (const auto& [what, outcome] : {Relying{"reads, waits, writes", added_in_turn},
                                      Relying{"counts before it writes", counted_too_early}}) {
    SCOPED_TRACE(what);
    for (const auto order :
         {emulator::Order::kRising, emulator::Order::kFalling, emulator::Order::kShuffled}) {
      const InOrder in_order(order, 1);
      EXPECT_EQ(outcome(), 8);
    }
    int wrong = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const InOrder in_order(emulator::Order::kInterleaved, seed);
      if (outcome() != 8) ++wrong;
    }
    EXPECT_GE(wrong, 3) << "of 10 seeds";
  }
}

// Blocks that are under way wait for each other, which works on a GPU that holds them all.
__global__ void wait_for_both(int* arrived) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1);
  while (atomicAdd(arrived, 0) < 2) {
  }
}

__global__ void keep_shared(int* out) {
  __shared__ int mine[32];
  mine[threadIdx.x] = static_cast<int>(blockIdx.x);
  for (int i = 0; i < 4; ++i) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = mine[31 - threadIdx.x];
}

TEST(Emulator, InterleavedBlocksHaveSharedMemoryOfTheirOwn) {
  const InOrder in_order(emulator::Order::kInterleaved, 1);
  int arrived = 0;
  launch(nullptr, {.blocks = 2, .threads = 32}, wait_for_both, &arrived);
  EXPECT_EQ(arrived, 2);
  std::vector<int> out(9 * 32);
  launch(nullptr, {.blocks = 9, .threads = 32}, keep_shared, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<int>(i / 32));
}

__global__ void note_turn(int* turns, int* count) {
  for (int i = 0; i < 5; ++i) {
    if (threadIdx.x == 0) turns[(*count)++] = static_cast<int>(blockIdx.x);
    __syncthreads();
  }
}

// Renumbers by first appearance: how blocks take turns, whichever blocks they are.
std::vector<int> renumbered(std::vector<int> turns) {
  std::vector<int> seen;
  for (int& turn : turns) {
    const auto at = std::ranges::find(seen, turn);
    const auto number = static_cast<int>(at - seen.begin());
    if (at == seen.end()) seen.push_back(turn);
    turn = number;
  }
  return turns;
}

TEST(Emulator, ASeedInterleavesTheSameWayEachTime) {
  const auto turns_of = [](std::uint64_t seed) {
    const InOrder in_order(emulator::Order::kInterleaved, seed);
    std::vector<int> turns(30);
    int count = 0;
    launch(nullptr, {.blocks = 6, .threads = 32}, note_turn, turns.data(), &count);
    EXPECT_EQ(count, 30);
    return turns;
  };
  EXPECT_EQ(turns_of(1), turns_of(1));
  EXPECT_NE(turns_of(1), turns_of(2));
  EXPECT_NE(renumbered(turns_of(1)), renumbered(turns_of(2))) << "not the order of blocks alone";
}

// Sets out[block x threads + n] to the thread that ran as the block's n-th.
__global__ void note_threads(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  out[blockIdx.x * blockDim.x + static_cast<unsigned>(count++)] = static_cast<int>(threadIdx.x);
}

TEST(Emulator, InterleavedBlocksShuffleTheirThreadsTheSameWayEachTime) {
  constexpr int kBlocks = 9, kThreads = 32;
  const auto threads_of = [](std::uint64_t seed) {
    const InOrder in_order(emulator::Order::kInterleaved, seed);
    std::vector<int> threads(kBlocks * kThreads);
    launch(nullptr, {.blocks = kBlocks, .threads = kThreads}, note_threads, threads.data());
    return threads;
  };
  const std::vector<int> threads = threads_of(1);
  EXPECT_EQ(threads_of(1), threads);
  EXPECT_NE(threads_of(2), threads);
  for (auto block = threads.begin(); block != threads.end(); block += kThreads) {
    EXPECT_FALSE(std::is_sorted(block, block + kThreads));
  }
}

__global__ void wait_apart_in_many() {
  if (threadIdx.x < 32) {  // NOLINT(bugprone-branch-clone): tests two barriers
    __syncthreads();
  } else {
    __syncthreads();
  }
}

// The child of a fork lacks the threads of an earlier launch.
TEST(EmulatorDeathTest, FailsAsWellWhereBlocksAreInterleaved) {
  const InOrder in_order(emulator::Order::kInterleaved, 1);
  std::vector<int> out(9 * 32);
  launch(nullptr, {.blocks = 9, .threads = 32}, keep_shared, out.data());
  EXPECT_DEATH(launch(nullptr, {.blocks = 9, .threads = 64}, wait_apart_in_many),
               "threads wait for others that wait elsewhere");
}

// ---- Shared memory -----------------------------------------------------------------------------

__global__ void read_uninitialised(float* out) {
  FETTLE_DYNAMIC_SHARED(float, values);
  if (blockIdx.x == 0) values[threadIdx.x] = 1;
  out[blockIdx.x * blockDim.x + threadIdx.x] = values[threadIdx.x];
}

TEST(Emulator, DynamicSharedMemoryIsNaNUntilItIsWritten) {
  std::vector<float> out(64);
  launch(nullptr, {.blocks = 2, .threads = 32, .shared_bytes = 32 * sizeof(float)},
         read_uninitialised, out.data());
  EXPECT_EQ(out[31], 1);
  EXPECT_TRUE(std::isnan(out[32]));
}

__global__ void do_nothing() {}

struct RefusedShape {
  LaunchShape shape;
  const char* error;
};

TEST(EmulatorDeathTest, RefusesTheShapesThatAGpuRefuses) {
  for (const auto& [shape, error] :
       std::vector<RefusedShape>{{{.blocks = 0}, "cudaErrorInvalidConfiguration"},
                                 {{.threads = 0}, "cudaErrorInvalidConfiguration"},
                                 {{.threads = 1025}, "cudaErrorInvalidConfiguration"},
                                 {{.blocks_y = 65536}, "cudaErrorInvalidConfiguration"},
                                 {{.shared_bytes = 48 * 1024 + 1}, "cudaErrorInvalidValue"}}) {
    EXPECT_DEATH(launch(nullptr, shape, do_nothing), std::string("emulator_test.cpp:.*") + error);
  }
}

TEST(Emulator, GivesMoreSharedMemoryToAKernelThatAsksForIt) {
  ASSERT_EQ(cudaFuncSetAttribute(read_uninitialised, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 100 * 1024),
            cudaSuccess);
  std::vector<float> out(32);
  launch(nullptr, {.threads = 32, .shared_bytes = 100 * 1024}, read_uninitialised, out.data());
  EXPECT_THAT(out, Each(1.0F));
  EXPECT_EQ(cudaFuncSetAttribute(read_uninitialised, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 228 * 1024),
            cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST(Emulator, RunsInSeveralThreadsAtOnce) {
  std::vector<std::vector<int>> values(4, counting(256));
  {
    std::vector<std::jthread> threads;
    for (auto& mine : values) {
      threads.emplace_back([&mine] {
        for (int i = 0; i < 101; ++i) {
          launch(nullptr, {.threads = 256}, reverse, mine.data(), true);
        }
      });
    }
  }
  std::vector<int> expected = counting(256);
  std::reverse(expected.begin(), expected.end());
  EXPECT_THAT(values, Each(expected));
}

}  // namespace
}  // namespace fettle::kernels::cuda
