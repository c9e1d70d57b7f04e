// Matrices packed for the matrix product of the fast linear layer (product.h).
//
// A product C[i, j] = sum_k A[i, k] B[k, j] reads both factors along k. Packing cuts a factor into
// panels of `width` rows of A (or columns of B). A panel holds, k by k, its `width` numbers side by
// side, so the innermost loop reads both factors from front to back, whatever their original
// layout. In the last panel of A, rows beyond the matrix are never read; in that of B, columns
// beyond it hold anything, and give columns of C that no tile stores.
//
// The unit is a word of 32 bits: one fp32 number, or two bf16 numbers that are neighbours along k
// (the last is zero for odd k), as the bf16 instruction reads them.
//
// Storage is allocated once for the largest matrix; packing allocates nothing. Not synchronised.
#pragma once

#include <cstdint>

#include "kernels/aligned.h"
#include "kernels/backend.h"

namespace fettle::kernels {

class PackedMatrix {
 public:
  // For at most `max_outer` rows of A (columns of B) and `max_inner` values of k.
  PackedMatrix(DataType type, std::int64_t width, std::int64_t max_outer, std::int64_t max_inner);

  // Packs [outer, inner], row-major: the rows of A, or B transposed.
  void pack_rows(ConstBuffer from, std::int64_t outer, std::int64_t inner);
  // Packs [inner, outer], row-major: B as it is, or A transposed.
  void pack_columns(ConstBuffer from, std::int64_t outer, std::int64_t inner);

  // Restores the matrix given to pack_rows.
  void unpack_rows(Buffer to, std::int64_t inner) const;

  std::int64_t outer() const { return outer_; }
  std::int64_t width() const { return width_; }
  // Values of k, in words.
  std::int64_t words() const { return words_; }
  std::int64_t panels() const { return (outer_ + width_ - 1) / width_; }
  // Rows of A (columns of B) in a panel: `width`, or fewer in the last.
  std::int64_t used(std::int64_t panel) const;
  const std::uint32_t* panel(std::int64_t number) const {
    return storage_.data() + number * words_ * width_;
  }

 private:
  DataType type_;
  std::int64_t width_;
  std::int64_t outer_ = 0, words_ = 0;
  AlignedArray<std::uint32_t> storage_;
};

}  // namespace fettle::kernels
