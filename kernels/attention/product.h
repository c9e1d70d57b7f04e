// The matrix products inside one head of the fast attention: small, dense, fp32, one thread.
//
// The caller pads the sizes, so no product has a ragged edge: a tile of 4 x 16 numbers of C stays
// in eight registers of eight. Sums run in order of `inner`. A pure function; usable from any
// thread.
#pragma once

#include <cstdint>

#include "kernels/reference/product.h"

namespace fettle::kernels {

inline constexpr std::int64_t kHeadTileRows = 4;
inline constexpr std::int64_t kHeadTileColumns = 16;

struct HeadProduct {
  std::int64_t rows = 0;     // a multiple of kHeadTileRows
  std::int64_t columns = 0;  // a multiple of kHeadTileColumns
  std::int64_t inner = 0;
  StridedMatrix a;
  const float* b = nullptr;
  std::int64_t b_stride = 0;  // from row to row
  float* c = nullptr;
  std::int64_t c_stride = 0;
  bool adds = false;  // C += A B, else C = A B
};

void multiply_head(const HeadProduct& product);

}  // namespace fettle::kernels
