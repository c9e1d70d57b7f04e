// SobolSequence: a quasi-random sequence in the unit cube with the direction numbers of Joe & Kuo
// (2008), optionally Owen-scrambled by hashing (Laine & Karras 2011, Burley 2020): each coordinate
// is a uniform draw, and any 2^k points from a multiple of 2^k fill the cube as evenly as before.
//
// at(i) is a pure function of (seed, i). Immutable; safe to share between threads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fettle::search {

class SobolSequence {
 public:
  static constexpr std::size_t kMaxDimensions = 3667;  // limit of the table of direction numbers

  // 1 <= dimensions <= kMaxDimensions. Without a seed the sequence is not scrambled and starts at
  // 0.
  SobolSequence(std::size_t dimensions, std::optional<std::uint64_t> seed);

  // Coordinates in [0, 1), multiples of 2^-32. The sequence starts again after 2^32 points.
  std::vector<double> at(std::uint64_t index) const;

 private:
  std::size_t dimensions_;
  std::optional<std::uint64_t> seed_;
  std::vector<std::uint32_t> directions_;  // [bit][dimension]
};

}  // namespace fettle::search
