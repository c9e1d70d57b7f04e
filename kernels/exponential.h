// exp of eight numbers at once, to within two units of the last place (Cephes' expf: a multiple of
// log 2 is split off, the rest is a polynomial). 0 below exp(-87), infinite above exp(88); NaN
// passes. Inlined as lanes.h explains. Pure; usable from any thread.
#pragma once

#include <bit>
#include <limits>

#include "kernels/lanes.h"

namespace fettle::kernels {

[[gnu::always_inline]] inline Lanes clamp_lanes(Lanes x, float low, float high) {
  x = x < low ? Lanes{} + low : x;
  return x > high ? Lanes{} + high : x;
}

[[gnu::always_inline]] inline Lanes exp_lanes(Lanes x) {
  constexpr float kInverseLog2 = 1.44269504F;
  constexpr float kLog2High = 0.693359375F;  // log 2 in two parts, the first one exact
  constexpr float kLog2Low = -2.12194440e-4F;
  constexpr float kRounder = 12582912.0F;  // 1.5 x 2^23: adding it rounds to a whole number
  constexpr std::int32_t kExponentBias = 127;
  constexpr int kMantissaBits = 23;
  constexpr float kLowest = -87;
  constexpr float kHighest = 88;
  const Lanes given = x;
  x = clamp_lanes(x, kLowest, kHighest);
  const Lanes shifted = x * kInverseLog2 + kRounder;
  const Lanes whole = shifted - kRounder;
  const Lanes r = x - whole * kLog2High - whole * kLog2Low;  // at most log 2 / 2 from 0
  Lanes p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  // The last bits of `shifted` are the whole number. As an exponent they make 2^whole.
  const auto power =
      std::bit_cast<LanesOfIntegers>(shifted) - std::bit_cast<std::int32_t>(kRounder);
  const Lanes result = p * std::bit_cast<Lanes>((power + kExponentBias) << kMantissaBits);
  const Lanes above_zero = given < kLowest ? Lanes{} : result;
  return given > kHighest ? Lanes{} + std::numeric_limits<float>::infinity() : above_zero;
}

}  // namespace fettle::kernels
