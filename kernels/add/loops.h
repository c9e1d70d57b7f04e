// y = a + b, or with `relu` max(0, a + b) where NaN passes (relu/formulas.h), element by element;
// 16-bit types are widened, added in fp32 and rounded. `y` may be `a` or `b`. Inlined into
// functions that a backend compiles for its processors; all give the same bits. Pure; usable from
// any thread.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/bfloat16.h"
#include "kernels/float16.h"
#include "kernels/relu/formulas.h"

namespace fettle::kernels {

template <bool rectified>
[[gnu::always_inline]] inline float sum_of(float a, float b) {
  return rectified ? relu(a + b) : a + b;
}

template <bool rectified>
[[gnu::always_inline]] inline void add_all(std::int64_t count, const float* a, const float* b,
                                           float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = sum_of<rectified>(a[i], b[i]);
}

template <bool rectified, float (*widen)(std::uint16_t), std::uint16_t (*round)(float)>
[[gnu::always_inline]] inline void add_all(std::int64_t count, const std::uint16_t* a,
                                           const std::uint16_t* b, std::uint16_t* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = round(sum_of<rectified>(widen(a[i]), widen(b[i])));
  }
}

template <bool rectified>
[[gnu::always_inline]] inline void add_each(DataType type, std::int64_t count, ConstBuffer a,
                                            ConstBuffer b, Buffer y) {
  if (type == DataType::kFloat32) {
    add_all<rectified>(count, static_cast<const float*>(a), static_cast<const float*>(b),
                       static_cast<float*>(y));
    return;
  }
  const auto* a_bits = static_cast<const std::uint16_t*>(a);
  const auto* b_bits = static_cast<const std::uint16_t*>(b);
  auto* y_bits = static_cast<std::uint16_t*>(y);
  if (type == DataType::kBFloat16) {
    add_all<rectified, from_bfloat16, to_bfloat16>(count, a_bits, b_bits, y_bits);
  } else {
    add_all<rectified, from_float16, to_float16>(count, a_bits, b_bits, y_bits);
  }
}

[[gnu::always_inline]] inline void add_typed(DataType type, std::int64_t count, ConstBuffer a,
                                             ConstBuffer b, Buffer y, bool relu) {
  if (relu) {
    add_each<true>(type, count, a, b, y);
  } else {
    add_each<false>(type, count, a, b, y);
  }
}

}  // namespace fettle::kernels
