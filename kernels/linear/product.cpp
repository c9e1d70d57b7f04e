#include "kernels/linear/product.h"

#include "base/check.h"
#include "kernels/linear/tile.h"

namespace fettle::kernels {
namespace {

// Computes all tiles under one panel of B, which stays in the second-level cache while A passes by.
void multiply_panel(DataType type, const PackedMatrix& a, const PackedMatrix& b,
                    const ProductOutput& output, std::int64_t b_panel) {
  const std::int64_t column = b_panel * kTileColumns;
  const std::int64_t element_bytes = output.store == Store::kWriteBFloat16 ? 2 : 4;
  Tile tile;
  tile.words = a.words();
  tile.a_width = a.width();
  tile.b = b.panel(b_panel);
  tile.store = output.store;
  tile.c_stride = b.outer();  // C is [a.outer(), b.outer()]
  tile.columns = b.used(b_panel);
  tile.bias = output.bias == nullptr ? nullptr : output.bias + column;
  tile.relu = output.relu;
  for (std::int64_t a_panel = 0; a_panel < a.panels(); ++a_panel) {
    const std::int64_t first = a_panel * a.width() * b.outer() + column;
    tile.a = a.panel(a_panel);
    tile.c = static_cast<std::byte*>(output.c) + first * element_bytes;
    avx512_tile(type, a.used(a_panel))(tile);
  }
}

}  // namespace

std::int64_t tile_rows_for(std::int64_t rows) {
  const std::int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  return (rows + tiles - 1) / tiles;
}

void multiply_packed(DataType type, const PackedMatrix& a, const PackedMatrix& b,
                     const ProductOutput& output) {
  CHECK(a.words() == b.words(), "the factors fit");
  CHECK(a.width() <= kTileRows && b.width() == kTileColumns, "the factors are packed for tiles");
#pragma omp parallel for schedule(static)
  for (std::int64_t panel = 0; panel < b.panels(); ++panel) {
    multiply_panel(type, a, b, output, panel);
  }
}

}  // namespace fettle::kernels
