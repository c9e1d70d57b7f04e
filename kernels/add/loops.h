// y = a + b, element by element; 16-bit types are widened, added in fp32 and rounded. `y` may be
// `a` or `b`. Inlined into functions that a backend compiles for the processors it wants; the same
// bits in all of them. Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/bfloat16.h"
#include "kernels/float16.h"

namespace fettle::kernels {

[[gnu::always_inline]] inline void add_all(std::int64_t count, const float* a, const float* b,
                                           float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

template <float (*widen)(std::uint16_t), std::uint16_t (*round)(float)>
[[gnu::always_inline]] inline void add_all(std::int64_t count, const std::uint16_t* a,
                                           const std::uint16_t* b, std::uint16_t* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = round(widen(a[i]) + widen(b[i]));
}

[[gnu::always_inline]] inline void add_typed(DataType type, std::int64_t count, ConstBuffer a,
                                             ConstBuffer b, Buffer y) {
  if (type == DataType::kFloat32) {
    add_all(count, static_cast<const float*>(a), static_cast<const float*>(b),
            static_cast<float*>(y));
    return;
  }
  const auto* a_bits = static_cast<const std::uint16_t*>(a);
  const auto* b_bits = static_cast<const std::uint16_t*>(b);
  auto* y_bits = static_cast<std::uint16_t*>(y);
  if (type == DataType::kBFloat16) {
    add_all<from_bfloat16, to_bfloat16>(count, a_bits, b_bits, y_bits);
  } else {
    add_all<from_float16, to_float16>(count, a_bits, b_bits, y_bits);
  }
}

}  // namespace fettle::kernels
