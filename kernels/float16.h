// float16: IEEE 754 binary16 (5 bits of exponent, 10 of fraction), kept as its 16 bits. The same
// bits as the F16C instructions and CUDA give, on any processor. Pure functions; usable from any
// thread.
#pragma once

#include <bit>
#include <cstdint>

namespace fettle::kernels {

// Exact, subnormal numbers included.
inline float from_float16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = half & 0x7FFF;
  const std::uint32_t normal = (magnitude << 13) + 0x38000000;   // exponent: 127 - 15 more
  const std::uint32_t special = 0x7F800000 | (magnitude << 13);  // infinity, NaN
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  const std::uint32_t finite = magnitude < 0x0400 ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude >= 0x7C00 ? special : finite));
}

// Rounds to nearest, ties to even; numbers from 65520 on become infinite, NaN stays a (quiet) NaN.
// Written without branches so that loops over it vectorise.
inline std::uint16_t to_float16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  // Drops 13 bits of fraction and takes 127 - 15 off the exponent. Ties that carry into the
  // exponent come out right, up to infinity.
  const std::uint32_t normal = ((magnitude + 0xFFF + ((magnitude >> 13) & 1)) >> 13) - 0x1C000;
  // Beside 0.5 the last place of an fp32 number is 2^-24, the smallest half: adding rounds.
  const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(aligned) - 0x3F000000;  // 0.5
  const std::uint32_t quiet_nan = 0x7E00 | ((magnitude >> 13) & 0x03FF);
  std::uint32_t result = magnitude < 0x38800000 ? subnormal : normal;  // below 2^-14
  result = magnitude >= 0x477FF000 ? 0x7C00 : result;                  // from 65520 on: infinity
  result = magnitude > 0x7F800000 ? quiet_nan : result;                // above infinity: NaN
  return static_cast<std::uint16_t>(sign | result);
}

}  // namespace fettle::kernels
