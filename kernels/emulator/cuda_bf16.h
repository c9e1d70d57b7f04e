// CUDA's bfloat16 (cuda_bf16.h of the toolkit) for the emulator: the type and its conversions,
// which give the same bits. No arithmetic, because kernels compute in float.
#pragma once

#include "kernels/bfloat16.h"
#include "kernels/emulator/vector_types.h"

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.

struct __nv_bfloat16 {
  unsigned short bits;  // the emulator's own member: use the functions
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
static_assert(sizeof(__nv_bfloat16) == 2 && sizeof(__nv_bfloat162) == 4);

inline float __bfloat162float(__nv_bfloat16 x) { return fettle::kernels::from_bfloat16(x.bits); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {fettle::kernels::to_bfloat16(x)}; }
inline __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }
inline float2 __bfloat1622float2(__nv_bfloat162 x) {
  return {__bfloat162float(x.x), __bfloat162float(x.y)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 x) { return __floats2bfloat162_rn(x.x, x.y); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return {x}; }

// NOLINTEND(readability-identifier-naming)
