// QuasiRandomStart: where a sampler looks before there is enough to learn from. Points of a
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

  // Coordinates in the unit cube; nothing where the sequence has fewer dimensions, or the
  // space has none.
  std::optional<std::vector<double>> at(std::int64_t index) const;

  // Of any point that is chosen so.
  static Explanation explain(std::int64_t trial);

 private:
  std::optional<SobolSequence> sequence_;
};

}  // namespace fettle::search
