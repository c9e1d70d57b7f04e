// A team: the threads that share one row of a matrix, a warp or a whole block. Kernels over rows
// are written once for both. Rows are dealt to all teams of the grid in turn, so the order of sums
// depends on the grid alone.
//
// All threads of a team are at the same row and call its sums together. Blocks have a multiple of
// 32 threads and one dimension. Included by .cu files only.
#pragma once

#include <cstdint>

#include "kernels/cuda/device_code/reduce.h"

namespace fettle::kernels::cuda {

// For short rows: several warps a block, which never wait for each other.
struct WarpTeam {
  static constexpr int kMaxThreads = kWarpSize;
  static __device__ int rank() { return static_cast<int>(threadIdx.x) % kWarpSize; }
  static __device__ int size() { return kWarpSize; }
  static __device__ int in_block() { return static_cast<int>(blockDim.x) / kWarpSize; }
  static __device__ int index() { return static_cast<int>(threadIdx.x) / kWarpSize; }
  static __device__ float sum(float value) { return warp_sum(value); }
  static __device__ float largest(float value) { return warp_max(value); }
};

// For long rows: the whole block.
struct BlockTeam {
  static __device__ int rank() { return static_cast<int>(threadIdx.x); }
  static __device__ int size() { return static_cast<int>(blockDim.x); }
  static __device__ int in_block() { return 1; }
  static __device__ int index() { return 0; }
  static __device__ float sum(float value) { return block_sum(value); }
  static __device__ float largest(float value) { return block_max(value, -INFINITY); }
};

// This team's index in the grid, and the number of teams: a team has rows index, index + count, ...
template <class Team>
__device__ std::int64_t team_index() {
  return std::int64_t{blockIdx.x} * Team::in_block() + Team::index();
}
template <class Team>
__device__ std::int64_t team_count() {
  return std::int64_t{gridDim.x} * Team::in_block();
}

// Calls visit(p, pack) for the packs of a row that a thread holds in registers, at most `kept`: its
// p-th is pack rank + p x size of the row's `packs`.
template <class Team, int kept, class Visit>
__device__ __forceinline__ void for_each_kept(int packs, Visit visit) {
#pragma unroll
  for (int p = 0; p < kept; ++p) {
    const int pack = Team::rank() + p * Team::size();
    if (pack < packs) visit(p, pack);
  }
}

}  // namespace fettle::kernels::cuda
