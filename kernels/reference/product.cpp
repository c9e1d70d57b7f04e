#include "kernels/reference/product.h"

namespace fettle::kernels {
namespace {

// A tile of C that fits in eight 128-bit registers, which every x86-64 has.
constexpr std::int64_t kTileRows = 4;
constexpr std::int64_t kTileColumns = 8;

struct Tile {
  std::int64_t inner;
  StridedMatrix a;
  const float* b;
  float* c;
  std::int64_t columns;  // the row stride of b and c
};

void add_full_tile(const Tile& tile) {
  float sums[kTileRows][kTileColumns];
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    for (std::int64_t j = 0; j < kTileColumns; ++j) sums[i][j] = tile.c[i * tile.columns + j];
  }
  for (std::int64_t k = 0; k < tile.inner; ++k) {
    const float* a = tile.a.data + k * tile.a.column_stride;
    const float* b = tile.b + k * tile.columns;
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      const float factor = a[i * tile.a.row_stride];
      for (std::int64_t j = 0; j < kTileColumns; ++j) sums[i][j] += factor * b[j];
    }
  }
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    for (std::int64_t j = 0; j < kTileColumns; ++j) tile.c[i * tile.columns + j] = sums[i][j];
  }
}

// Adds to the ragged edges of C: `height` x `width` elements, same order of summation.
void add_partial_tile(const Tile& tile, std::int64_t height, std::int64_t width) {
  for (std::int64_t i = 0; i < height; ++i) {
    float* c = tile.c + i * tile.columns;
    for (std::int64_t k = 0; k < tile.inner; ++k) {
      const float factor = tile.a.data[i * tile.a.row_stride + k * tile.a.column_stride];
      const float* b = tile.b + k * tile.columns;
      for (std::int64_t j = 0; j < width; ++j) c[j] += factor * b[j];
    }
  }
}

}  // namespace

void add_product(std::int64_t rows, std::int64_t columns, std::int64_t inner, StridedMatrix a,
                 const float* b, float* c) {
  for (std::int64_t column = 0; column < columns; column += kTileColumns) {
    for (std::int64_t row = 0; row < rows; row += kTileRows) {
      const StridedMatrix a_rows{a.data + row * a.row_stride, a.row_stride, a.column_stride};
      const Tile tile{inner, a_rows, b + column, c + row * columns + column, columns};
      const std::int64_t height = rows - row < kTileRows ? rows - row : kTileRows;
      const std::int64_t width = columns - column < kTileColumns ? columns - column : kTileColumns;
      if (height == kTileRows && width == kTileColumns) {
        add_full_tile(tile);
      } else {
        add_partial_tile(tile, height, width);
      }
    }
  }
}

}  // namespace fettle::kernels
