// The loops of ReLU (reference.h), inlined into functions that a backend compiles for the
// processors it wants. In place or not.
#pragma once

#include <cstdint>

#include "kernels/relu/reference.h"

namespace fettle::kernels {

// bf16 needs no arithmetic: the bits are passed on or cleared. Comparing them as integers equals
// comparing the numbers, but for NaN, which passes in both directions whatever its sign.
inline bool is_bfloat16_nan(std::uint16_t bits) { return (bits & 0x7FFF) > 0x7F80; }
inline std::uint16_t relu(std::uint16_t x) {
  return (x & 0x8000) != 0 && !is_bfloat16_nan(x) ? 0 : x;
}
inline std::uint16_t relu_gradient(std::uint16_t y, std::uint16_t dy) {
  const bool positive = y != 0 && (y & 0x8000) == 0;
  return positive || is_bfloat16_nan(y) ? dy : 0;
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
