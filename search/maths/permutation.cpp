#include "search/maths/permutation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/philox.h"

namespace fettle::search {
namespace {

// Four rounds are enough with a good round function (Luby & Rackoff 1988); small halves need a few
// more.
constexpr std::uint32_t kRounds = 8;

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size), key_(key) {
  CHECK(size >= 1 && size <= std::uint64_t{1} << 63, "a permutation has 1 to 2^63 elements");
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
}

std::uint64_t Permutation::once(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  const PhiloxKey key = {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)};
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxCounter bits = philox({static_cast<std::uint32_t>(right), round, 0, 0}, key);
    const std::uint64_t mixed = left ^ (bits[0] & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::at(std::uint64_t position) const {
  CHECK(position < size_, "a position is below the size of its permutation");
  do {
    position = once(position);
  } while (position >= size_);
  return position;
}

}  // namespace fettle::search
