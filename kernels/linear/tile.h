// One tile of a matrix product: product.cpp's interface to the instruction set (avx512.cpp).
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/linear/product.h"

namespace fettle::kernels {

struct Tile {
  std::int64_t words = 0;            // values of k
  const std::uint32_t* a = nullptr;  // [words, a_width]
  std::int64_t a_width = 0;
  const std::uint32_t* b = nullptr;  // [words, kTileColumns]
  Store store = Store::kWriteFloat32;
  void* c = nullptr;            // its first element
  std::int64_t c_stride = 0;    // elements from row to row
  std::int64_t columns = 0;     // in use: 1 to kTileColumns
  const float* bias = nullptr;  // of its first column
  bool relu = false;
};

using TileFunction = void (*)(const Tile&);

// Returns the function for tiles of `rows` rows: 1 to kTileRows. Needs AVX-512 (F, BW, VL); bf16
// also AVX-512 BF16.
TileFunction avx512_tile(DataType type, std::int64_t rows);

}  // namespace fettle::kernels
