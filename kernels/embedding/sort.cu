// Least-significant-digit radix sort, four bits a pass, by one block.
//
// Bound by latency: a batch of tokens is some 100 KB, which the second-level cache holds. One block
// sorts without a kernel or a grid-wide wait between its passes: two passes for the characters of a
// text, four for a vocabulary of 50,257. A thread owns a run of neighbouring tokens and counts
// their digits. Prefix sums of the counts [digit][thread] give each thread the places of its tokens
// of each digit, and it puts them there in order. So the sort is stable, and independent of thread
// timing.
#include <algorithm>
#include <bit>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/reduce.h"
#include "kernels/embedding/sort.h"

namespace fettle::kernels::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kDigitBits = 4;
constexpr int kDigits = 1 << kDigitBits;

// One counter a digit and thread: 32 KB. Threads of a warp have neighbouring columns, so no two
// meet in a bank, whatever digits they count.
using Counters = std::uint32_t[kDigits][kThreads];

// The tokens of this thread.
struct Segment {
  __device__ explicit Segment(std::int32_t count)
      : first(static_cast<std::int32_t>(std::int64_t{count} * threadIdx.x / kThreads)),
        last(static_cast<std::int32_t>(std::int64_t{count} * (threadIdx.x + 1) / kThreads)) {}
  std::int32_t first, last;
};

__device__ int digit_of(std::int32_t token, int shift) { return (token >> shift) % kDigits; }

__device__ void count_digits(const Segment& mine, const std::int32_t* tokens, int shift,
                             Counters& counters) {
  for (auto& of_digit : counters) of_digit[threadIdx.x] = 0;
  for (std::int32_t i = mine.first; i < mine.last; ++i) {
    ++counters[digit_of(tokens[i], shift)][threadIdx.x];
  }
}

// Returns the sum of the preceding threads' values.
__device__ std::uint32_t sum_before(std::uint32_t value) {
  __shared__ std::uint32_t of_warps[kThreads / kWarpSize];
  const auto lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const auto warp = static_cast<int>(threadIdx.x) / kWarpSize;
  std::uint32_t sum = value;
  for (int reach = 1; reach < kWarpSize; reach *= 2) {
    const std::uint32_t below = __shfl_up_sync(kAllLanes, sum, reach);
    if (lane >= reach) sum += below;
  }
  if (lane == kWarpSize - 1) of_warps[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += of_warps[w];
  __syncthreads();  // before the next call overwrites of_warps
  return sum - value;
}

// Replaces every counter by the sum of the counters before it, thread after thread, digit after
// digit. For this the counters form one list, in which each thread has kDigits neighbours.
__device__ void sum_counters(Counters& counters) {
  std::uint32_t* mine = &counters[0][0] + threadIdx.x * kDigits;
  std::uint32_t total = 0;
  for (int i = 0; i < kDigits; ++i) total += mine[i];
  std::uint32_t before = sum_before(total);
  for (int i = 0; i < kDigits; ++i) {
    const std::uint32_t value = mine[i];
    mine[i] = before;
    before += value;
  }
}

// The passes write to `to` and `from` in turn, `to` first; sort_tokens() returns the last target.
__global__ void __launch_bounds__(kThreads)
    sort_kernel(std::int32_t count, int bits, const std::int32_t* tokens, TokenPlaces from,
                TokenPlaces to) {
  __shared__ Counters counters;
  const Segment mine(count);
  // A thread counts its own copies, so the first pass needs no barrier before it.
  for (std::int32_t i = mine.first; i < mine.last; ++i) {
    from.tokens[i] = tokens[i];
    from.places[i] = i;
  }
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    count_digits(mine, from.tokens, shift, counters);
    __syncthreads();
    sum_counters(counters);
    __syncthreads();
    for (std::int32_t i = mine.first; i < mine.last; ++i) {
      const std::uint32_t target = counters[digit_of(from.tokens[i], shift)][threadIdx.x]++;
      to.tokens[target] = from.tokens[i];
      to.places[target] = from.places[i];
    }
    __syncthreads();
    const TokenPlaces sorted = to;
    to = from;
    from = sorted;
  }
}

}  // namespace

TokenPlaces sort_tokens(Device& device, std::int64_t vocabulary, std::int32_t count,
                        const std::int32_t* tokens, TokenPlaces buffer, TokenPlaces other) {
  // 0 for a vocabulary of one token: no pass, and `buffer` has the list.
  const int bits = std::bit_width(static_cast<std::uint64_t>(vocabulary - 1));
  launch(device.stream(), {.threads = kThreads}, sort_kernel, count, bits, tokens, buffer, other);
  const int passes = (bits + kDigitBits - 1) / kDigitBits;
  return passes % 2 == 0 ? buffer : other;
}

}  // namespace fettle::kernels::cuda
