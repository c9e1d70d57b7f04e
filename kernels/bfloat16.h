// bfloat16: the upper half of an fp32 number, kept as its 16 bits.
// Pure functions; usable from any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace fettle::kernels {

inline float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even; NaN stays a (quiet) NaN, numbers beyond the range become
// infinite. Written without branches so that loops over it vectorise.
inline std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40;
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded);
}

// Converts an fp32 element, or the bits of a bf16 element, to fp32.
inline float widen(float value) { return value; }
inline float widen(std::uint16_t bits) { return from_bfloat16(bits); }

}  // namespace fettle::kernels
