// Eight numbers at a time, by the compiler's vector extension: one AVX2 register, two of SSE.
// (Sixteen gain nothing where memory is the limit, and GCC 12 compares them one by one.) Inlined
// into functions that are compiled for each processor (targets.h). Pure functions; usable from any
// thread.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace fettle::kernels {

inline constexpr std::int64_t kLanes = 8;

// A full kLanes, known at compile time.
using AllLanes = std::integral_constant<std::int64_t, kLanes>;

using Lanes = float __attribute__((vector_size(32)));
using LanesOfBits = std::uint32_t __attribute__((vector_size(32)));
using LanesOfIntegers = std::int32_t __attribute__((vector_size(32)));
using LanesOfHalves = std::uint16_t __attribute__((vector_size(16)));

// Loads the first `count` elements, at most kLanes, and zeros after them.
template <class Vector, class Element>
[[gnu::always_inline]] inline Vector load_part(const Element* from, std::int64_t count) {
  Vector values{};
  if (count == kLanes) {
    std::memcpy(&values, from, sizeof(values));
  } else {
    std::memcpy(&values, from, static_cast<std::size_t>(count) * sizeof(Element));
  }
  return values;
}

template <class Vector, class Element>
[[gnu::always_inline]] inline void store_part(const Vector& values, Element* to,
                                              std::int64_t count) {
  if (count == kLanes) {
    std::memcpy(to, &values, sizeof(values));
  } else {
    std::memcpy(to, &values, static_cast<std::size_t>(count) * sizeof(Element));
  }
}

[[gnu::always_inline]] inline Lanes load_lanes(const float* from, std::int64_t count) {
  return load_part<Lanes>(from, count);
}

[[gnu::always_inline]] inline Lanes load_lanes(const std::uint16_t* from, std::int64_t count) {
  const auto halves = load_part<LanesOfHalves>(from, count);
  return std::bit_cast<Lanes>(__builtin_convertvector(halves, LanesOfBits) << 16);
}

[[gnu::always_inline]] inline void store_lanes(const Lanes& values, float* to, std::int64_t count) {
  store_part(values, to, count);
}

// Rounds to nearest even, as bfloat16.h does for one number.
[[gnu::always_inline]] inline void store_lanes(const Lanes& values, std::uint16_t* to,
                                               std::int64_t count) {
  const auto bits = std::bit_cast<LanesOfBits>(values);
  const LanesOfBits rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const LanesOfBits quiet_nan = (bits >> 16) | 0x40;  // a NaN, whatever bits were cut off
  const LanesOfBits chosen = values != values ? quiet_nan : rounded;
  store_part(__builtin_convertvector(chosen, LanesOfHalves), to, count);
}

}  // namespace fettle::kernels
