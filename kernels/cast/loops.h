// Conversions between fp32 and the 16-bit types, element by element. Inlined into functions that a
// backend compiles for its processors. Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/bfloat16.h"
#include "kernels/float16.h"

namespace fettle::kernels {

// Rounds to nearest even.
[[gnu::always_inline]] inline void round_all(DataType type, std::int64_t count,
                                             const float* __restrict from,
                                             std::uint16_t* __restrict to) {
  if (type == DataType::kFloat16) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = to_float16(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = to_bfloat16(from[i]);
  }
}

// Exact.
[[gnu::always_inline]] inline void widen_all(DataType type, std::int64_t count,
                                             const std::uint16_t* __restrict from,
                                             float* __restrict to) {
  if (type == DataType::kFloat16) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_float16(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_bfloat16(from[i]);
  }
}

}  // namespace fettle::kernels
