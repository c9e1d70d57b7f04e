#include <algorithm>
#include <string>

#include "kernels/linear/matrix_product.cuh"

namespace fettle::kernels::cuda {

Status check_product(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  constexpr std::int64_t kMostColumns = std::int64_t{kProductTile} * 65535;  // limit of gridDim.y
  if (rows <= kMost && std::max(columns, depth) <= kMostColumns) return success();
  return invalid("a matrix product of " + std::to_string(rows) + " x " + std::to_string(depth) +
                 " by " + std::to_string(columns) + ": expected at most " + std::to_string(kMost) +
                 " rows and " + std::to_string(kMostColumns) +
                 " columns; use a smaller batch or fewer units");
}

int slices_for(const Device& device, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  // Two blocks a multiprocessor, each with a sum long enough to be worth its slice.
  constexpr std::int64_t kShortest = 256;
  constexpr std::int64_t kMaxSlices = 256;
  const std::int64_t tiles = product_tiles(rows) * product_tiles(columns);
  // 0 if the tiles alone fill the device: one slice.
  const std::int64_t wanted = std::min(kMaxSlices, 2 * device.multiprocessors() / tiles);
  const std::int64_t useful = (depth + kShortest - 1) / kShortest;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(wanted, useful)));
}

std::int64_t sum_bytes(const Device& device, std::int64_t rows, std::int64_t columns,
                       std::int64_t max_depth) {
  return slices_for(device, rows, columns, max_depth) * rows * columns *
         static_cast<std::int64_t>(sizeof(float));
}

}  // namespace fettle::kernels::cuda
