// CUDA's half (cuda_fp16.h of the toolkit) for the emulator: the type and its conversions, which
// give the same bits. No arithmetic, because kernels compute in float.
#pragma once

#include "kernels/emulator/vector_types.h"
#include "kernels/float16.h"

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.

struct __half {
  unsigned short bits;  // the emulator's own member: use the functions
};
struct alignas(4) __half2 {
  __half x, y;
};
static_assert(sizeof(__half) == 2 && sizeof(__half2) == 4);

inline float __half2float(__half x) { return fettle::kernels::from_float16(x.bits); }
inline __half __float2half_rn(float x) { return {fettle::kernels::to_float16(x)}; }
inline __half __float2half(float x) { return __float2half_rn(x); }
inline float2 __half22float2(__half2 x) { return {__half2float(x.x), __half2float(x.y)}; }
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
inline __half2 __float22half2_rn(float2 x) { return __floats2half2_rn(x.x, x.y); }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(unsigned short x) { return {x}; }

// NOLINTEND(readability-identifier-naming)
