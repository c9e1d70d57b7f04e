// QuasiRandomStart: the points of a sampler before there is enough to learn from. Points of a
// scrambled Sobol sequence cover the space better than independent draws.
//
// at(i) is a pure function of (dimensions, seed, i). Immutable; safe to share between threads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search/maths/sobol_sequence.h"
#include "search/search.h"

namespace fettle::search {

class QuasiRandomStart {
 public:
  QuasiRandomStart(std::size_t dimensions, std::int64_t seed);

  // Coordinates in the unit cube; nullopt if the space has no dimensions, or more than the sequence
  // supports.
  std::optional<std::vector<double>> at(std::int64_t index) const;

  // Explains a point of the start.
  static Explanation explain(std::int64_t trial);

 private:
  std::optional<SobolSequence> sequence_;
};

}  // namespace fettle::search
