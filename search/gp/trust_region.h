// Trust region: the distance from the best point to search within, once searching everywhere no
// longer helps.
//
// After a while without a new best trial, and from the beginning with many parameters, every second
// search for candidates is confined to a box around the best point. The box halves while nothing is
// gained, and starts over when it has become small (in the spirit of TuRBO, Eriksson et al. 2019,
// but a function of the number of outcomes since the best one alone). Pure.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace fettle::search::gp {

inline constexpr std::size_t kManyParameters = 20;
inline constexpr std::int64_t kSizes = 5;  // number of boxes: side 1/2 to 1/32

// The side of the box; 1 = the whole space. `stagnation`: outcomes since the best one.
inline double trust_region_side(std::int64_t stagnation, std::size_t parameters) {
  const auto patience = static_cast<std::int64_t>(10 + parameters);
  const std::int64_t waited = stagnation / patience + (parameters > kManyParameters ? 1 : 0);
  if (waited == 0) return 1;
  return std::ldexp(1.0, -1 - static_cast<int>((waited - 1) % kSizes));
}

}  // namespace fettle::search::gp
