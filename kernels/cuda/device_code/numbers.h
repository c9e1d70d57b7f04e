// The three types of numbers in device code. Memory holds any of them; arithmetic is in float.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/platform.h"

namespace fettle::kernels::cuda {

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }

// Rounds to nearest even, as the CPU does: from_float<T>(x).
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

// Calls `use` on the host with a value of the C++ type for `type`:
//   with_type(type, [&](auto zero) { using T = decltype(zero); ... });
template <class F>
decltype(auto) with_type(DataType type, F&& use) {
  switch (type) {
    case DataType::kBFloat16:
      return std::forward<F>(use)(__nv_bfloat16{});
    case DataType::kFloat16:
      return std::forward<F>(use)(__half{});
    case DataType::kFloat32:
      break;
  }
  return std::forward<F>(use)(float{});
}

// `N` numbers that are read or written with one instruction (16 bytes: 4 floats or 8 halves). The
// address is a multiple of their size.
template <class T, int N = 16 / static_cast<int>(sizeof(T))>
struct alignas(sizeof(T) * N) Pack {
  T at[N];
  static constexpr int kCount = N;
};

}  // namespace fettle::kernels::cuda
