// The loops of ReLU (formulas.h), inlined into functions that a backend compiles for its
// processors. In place or not.
#pragma once

#include <cstdint>

#include "kernels/relu/formulas.h"

namespace fettle::kernels {

// 16-bit types need no arithmetic: the bits are passed on or cleared. Comparing bits as integers
// equals comparing the numbers, except for NaN, which passes in both directions whatever its sign.
// NaN begins above `infinity`, the type's pattern of infinity.
template <std::uint16_t infinity>
inline bool is_nan(std::uint16_t bits) {
  return (bits & 0x7FFF) > infinity;
}
template <std::uint16_t infinity>
inline std::uint16_t relu_of(std::uint16_t x) {
  return (x & 0x8000) != 0 && !is_nan<infinity>(x) ? 0 : x;
}
template <std::uint16_t infinity>
inline std::uint16_t relu_gradient_of(std::uint16_t y, std::uint16_t dy) {
  const bool positive = y != 0 && (y & 0x8000) == 0;
  return positive || is_nan<infinity>(y) ? dy : 0;
}

// bf16 is plain std::uint16_t here, as in every buffer; fp16 is a distinct type.
inline constexpr std::uint16_t kInfiniteBFloat16 = 0x7F80;
inline std::uint16_t relu(std::uint16_t x) { return relu_of<kInfiniteBFloat16>(x); }
inline std::uint16_t relu_gradient(std::uint16_t y, std::uint16_t dy) {
  return relu_gradient_of<kInfiniteBFloat16>(y, dy);
}

struct Float16 {
  std::uint16_t bits;
};
static_assert(sizeof(Float16) == 2);
inline constexpr std::uint16_t kInfiniteFloat16 = 0x7C00;
inline Float16 relu(Float16 x) { return {relu_of<kInfiniteFloat16>(x.bits)}; }
inline Float16 relu_gradient(Float16 y, Float16 dy) {
  return {relu_gradient_of<kInfiniteFloat16>(y.bits, dy.bits)};
}

template <class Element>
[[gnu::always_inline]] inline void relu_all(std::int64_t count, const Element* x, Element* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = relu(x[i]);
}

template <class Element>
[[gnu::always_inline]] inline void relu_gradient_all(std::int64_t count, const Element* y,
                                                     const Element* dy, Element* dx) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = relu_gradient(y[i], dy[i]);
}

}  // namespace fettle::kernels
