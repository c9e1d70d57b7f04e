#include "kernels/attention/product.h"

#include "kernels/lanes.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

constexpr std::int64_t kVectors = kHeadTileColumns / kLanes;

[[gnu::always_inline]] inline void multiply_tile(const HeadProduct& p, std::int64_t row,
                                                 std::int64_t column) {
  Lanes sums[kHeadTileRows][kVectors] = {};
  float* c = p.c + row * p.c_stride + column;
  if (p.adds) {
    for (std::int64_t i = 0; i < kHeadTileRows; ++i) {
      for (std::int64_t v = 0; v < kVectors; ++v)
        sums[i][v] = load_lanes(c + i * p.c_stride + v * kLanes, AllLanes());
    }
  }
  const float* a = p.a.data + row * p.a.row_stride;
  const float* b = p.b + column;
  for (std::int64_t k = 0; k < p.inner; ++k, a += p.a.column_stride, b += p.b_stride) {
    const Lanes b0 = load_lanes(b, AllLanes());
    const Lanes b1 = load_lanes(b + kLanes, AllLanes());
    for (std::int64_t i = 0; i < kHeadTileRows; ++i) {
      const float factor = a[i * p.a.row_stride];
      sums[i][0] += factor * b0;
      sums[i][1] += factor * b1;
    }
  }
  for (std::int64_t i = 0; i < kHeadTileRows; ++i) {
    for (std::int64_t v = 0; v < kVectors; ++v)
      store_lanes(sums[i][v], c + i * p.c_stride + v * kLanes, AllLanes());
  }
}

}  // namespace

FETTLE_FOR_EACH_PROCESSOR void multiply_head(const HeadProduct& product) {
  static_assert(kVectors == 2, "as many as the loop over inner writes out");
  for (std::int64_t column = 0; column < product.columns; column += kHeadTileColumns) {
    for (std::int64_t row = 0; row < product.rows; row += kHeadTileRows) {
      multiply_tile(product, row, column);
    }
  }
}

}  // namespace fettle::kernels
