// Sums and maxima over a warp and over a block, in a fixed order: the same values give the same
// bits. Device code; every thread of the warp or block calls, and every thread gets the result.
#pragma once

#include "kernels/cuda/runtime/platform.h"

namespace fettle::kernels::cuda {

inline constexpr unsigned kAllLanes = 0xFFFFFFFF;
inline constexpr int kWarpSize = 32;
inline constexpr int kMaxWarps = 32;  // of a block

struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Maximum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

// A butterfly: lane l combines with lane l ^ 16, l ^ 8, ... All lanes get the same bits, as
// `combine` is commutative.
template <class T, class Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, offset));
  }
  return value;
}
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  return warp_reduce(value, Sum());
}
template <class T>
__device__ __forceinline__ T warp_max(T value) {
  return warp_reduce(value, Maximum());
}

// Reduces over a block of one dimension whose threads are a multiple of 32. `nothing` is the
// identity of `combine`. May be called again at once: the barrier at the end keeps the shared
// values until all have read them.
template <class T, class Combine>
__device__ T block_reduce(T value, T nothing, Combine combine) {
  __shared__ T of_warps[kMaxWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int warps = static_cast<int>(blockDim.x) / kWarpSize;
  value = warp_reduce(value, combine);
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  value = warp_reduce(lane < warps ? of_warps[lane] : nothing, combine);
  __syncthreads();
  return value;
}
template <class T>
__device__ T block_sum(T value) {
  return block_reduce(value, T(0), Sum());
}
// `lowest`: a lower bound of all values.
template <class T>
__device__ T block_max(T value, T lowest) {
  return block_reduce(value, lowest, Maximum());
}

}  // namespace fettle::kernels::cuda
