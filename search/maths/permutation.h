// Permutation: a random order of 0 ... size-1 that is computed, not stored.
//
// A Feistel network over Philox permutes the smallest even number of bits that holds the size; a
// value outside the range is permuted again until it is inside ("cycle walking", Black & Rogaway
// 2002). at() is a bijection for every key. Constant memory; pure; safe to share between threads.
#pragma once

#include <cstdint>

namespace fettle::search {

class Permutation {
 public:
  // 1 <= size <= 2^63.
  Permutation(std::uint64_t size, std::uint64_t key);
  // The index at `position`, which must be below `size`.
  std::uint64_t at(std::uint64_t position) const;

 private:
  std::uint64_t once(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t key_;
  int half_bits_ = 1;
};

}  // namespace fettle::search
