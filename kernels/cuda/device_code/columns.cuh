// Sums over the rows of a matrix [rows, channels], one for each channel, in a fixed order: for bias
// gradients and the statistics of batch norm.
//
// Bound by bytes. The rows are cut into slices, one for each block. In a block, `lanes`
// neighbouring threads read one row, `kWidth` channels (16 bytes where they fit) each, and the
// blockDim / lanes groups of threads read rows that far apart. So a warp reads whole sectors
// whatever the number of channels. The second stage, in a separate launch or the last block
// (last_block.cuh), sums the slices: every sum has the same order each time, without atomics.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/packs.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/platform.h"

namespace fettle::kernels::cuda {

// Number of rows that a thread has in flight.
constexpr int kRowsAtOnce = 4;

struct ColumnSums {
  std::int64_t rows = 0;
  int channels = 0;
  int lanes = 1;   // threads side by side in a row: a power of two
  int slices = 1;  // of the rows
};

// The channels and rows of a thread. Threads past the last channel have no rows.
template <int kWidth>
struct ColumnThread {
  __device__ explicit ColumnThread(const ColumnSums& sums)
      : channel((static_cast<int>(blockIdx.y) * sums.lanes +
                 static_cast<int>(threadIdx.x) % sums.lanes) *
                kWidth),
        step(static_cast<int>(blockDim.x) / sums.lanes),
        row(sums.rows * blockIdx.x / sums.slices + static_cast<int>(threadIdx.x) / sums.lanes),
        end(channel < sums.channels ? sums.rows * (blockIdx.x + 1) / sums.slices : 0) {}

  // Whether this thread writes the sums of its columns.
  __device__ bool writes(const ColumnSums& sums) const {
    return static_cast<int>(threadIdx.x) < sums.lanes && channel < sums.channels;
  }

  int channel;
  std::int64_t step;
  std::int64_t row;
  std::int64_t end;
};

// Merges the values of the threads of a column; the first of these threads gets the result.
// `shared` holds kWidth x blockDim.x values. Every thread of the block calls it. Threads a multiple
// of `lanes` apart have the same columns, and every `reach` is such a multiple: both are powers of
// two.
template <int kWidth, class Value, class Merge>
__device__ void merge_rows(int lanes, Value* shared, Value (&mine)[kWidth], Merge merge) {
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
#pragma unroll
  for (int v = 0; v < kWidth; ++v) shared[v * threads + thread] = mine[v];
  __syncthreads();  // all values are there
  for (int reach = threads / 2; reach >= lanes; reach /= 2) {
    if (thread < reach) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        mine[v] = merge(mine[v], shared[v * threads + thread + reach]);
        shared[v * threads + thread] = mine[v];
      }
    }
    __syncthreads();  // this round's sums are there for the next, which half as many threads do
  }
}

// ---- On the host -------------------------------------------------------------------------------

// Threads of a summing block: a power of two, and at most 48 KiB of shared memory for merge_rows.
constexpr unsigned kSumThreads = 256;

// Maximum number of threads side by side in a row.
constexpr int kMaxLanes = 32;

// Chooses enough slices to fill the device four times, provided that each thread has a few rows.
// `width`: channels that a thread reads at once; `threads`: of a block.
inline ColumnSums column_sums(const Device& device, std::int64_t rows, std::int64_t channels,
                              int width, unsigned threads) {
  constexpr std::int64_t kMaxSlices = 1024;
  const std::int64_t groups = (channels + width - 1) / width;
  const int lanes = static_cast<int>(
      std::min<std::uint64_t>(std::bit_ceil(static_cast<std::uint64_t>(groups)), kMaxLanes));
  const std::int64_t blocks_y = (groups + lanes - 1) / lanes;
  const std::int64_t rows_a_pass = std::int64_t{threads} / lanes * kRowsAtOnce;
  // Rounded up, so at least 1, as clamp() requires.
  const std::int64_t wanted = (4 * device.multiprocessors() + blocks_y - 1) / blocks_y;
  const std::int64_t slices = std::clamp<std::int64_t>((rows + rows_a_pass - 1) / rows_a_pass, 1,
                                                       std::min<std::int64_t>(wanted, kMaxSlices));
  return {rows, static_cast<int>(channels), lanes, static_cast<int>(slices)};
}

inline LaunchShape launch_shape(const ColumnSums& sums, int width, unsigned threads,
                                std::size_t bytes_of_value) {
  const int columns = sums.lanes * width;
  return {.blocks = static_cast<unsigned>(sums.slices),
          .blocks_y = static_cast<unsigned>((sums.channels + columns - 1) / columns),
          .threads = threads,
          .shared_bytes = bytes_of_value * static_cast<std::size_t>(width) * threads};
}

}  // namespace fettle::kernels::cuda
