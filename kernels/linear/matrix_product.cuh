// The host side of our own matrix products (tiled_product.cuh) for linear layers and convolutions:
// the number of slices into which they are cut.
//
// The library does this work if it can (docs/decisions/0017); this product is its comparison, and
// its replacement for shapes without a plan. A product with few tiles and a long sum, as a weight
// gradient, is cut along the depth; add_slices sums the slices in order, so the same operands give
// the same bits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/result.h"
#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/linear/add_slices.h"
#include "kernels/linear/tiled_product.cuh"

namespace fettle::kernels::cuda {

inline std::int64_t product_tiles(std::int64_t count) {
  return (count + kProductTile - 1) / kProductTile;
}

// A product counts its rows, columns and depth in 31 bits, and tiles of columns in 16. Errors: one
// of them is larger. The depth has the limit of the columns, because it becomes the columns of the
// weight gradient; so one call covers both products.
Status check_product(std::int64_t rows, std::int64_t columns, std::int64_t depth);

template <class A, class B, class Store>
void multiply(const Device& device, const ProductSize& size, const A& a, const B& b,
              const Store& store) {
  static_assert(std::is_same_v<typename A::Value, typename B::Value>);
  const LaunchShape shape{
      .blocks = static_cast<unsigned>(product_tiles(size.rows)),
      .blocks_y = static_cast<unsigned>(product_tiles(size.columns) * size.slices),
      .threads = kTiledThreads};
  launch(device.stream(), shape, tiled_product<A, B, Store>, size, a, b, store);
}

// Slices of a sum over `depth` that is added to a weight gradient. The device's scratch must have
// been reserved: sum_bytes() of the longest depth.
int slices_for(const Device& device, std::int64_t rows, std::int64_t columns, std::int64_t depth);
std::int64_t sum_bytes(const Device& device, std::int64_t rows, std::int64_t columns,
                       std::int64_t max_depth);

template <class A, class B>
void add_product(Device& device, ProductSize size, const A& a, const B& b, float* sums) {
  size.slices = slices_for(device, size.rows, size.columns, size.depth);
  auto* slices =
      static_cast<float*>(device.scratch(sum_bytes(device, size.rows, size.columns, size.depth)));
  multiply(device, size, a, b, WriteSlice{slices, size.rows, size.columns});
  add_slices(device, size.slices, std::int64_t{size.rows} * size.columns, slices, sums);
}

}  // namespace fettle::kernels::cuda
