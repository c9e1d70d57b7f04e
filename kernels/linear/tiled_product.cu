#include <algorithm>
#include <string>

#include "kernels/linear/tiled_product.cuh"

namespace fettle::kernels::cuda {
namespace {

// Bound by bytes: (slices + 2) x count x 4, every access coalesced.
__global__ void add_slices_kernel(int slices, std::int64_t count, const float* __restrict__ from,
                                  float* __restrict__ sums) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    float sum = 0;
#pragma unroll 4
    for (int slice = 0; slice < slices; ++slice) sum += from[slice * count + i];
    sums[i] += sum;
  }
}

}  // namespace

Status check_product(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  constexpr std::int64_t kMostColumns = std::int64_t{kProductTile} * 65535;
  if (rows <= kMost && std::max(columns, depth) <= kMostColumns) return success();
  return invalid("a matrix product of " + std::to_string(rows) + " x " + std::to_string(depth) +
                 " by " + std::to_string(columns) + ": expected at most " + std::to_string(kMost) +
                 " rows and " + std::to_string(kMostColumns) +
                 " columns; use a smaller batch or fewer units");
}

int slices_for(const Device& device, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  // Two blocks a multiprocessor, each with a sum that is worth its slice.
  constexpr std::int64_t kShortest = 16 * kProductDepth;
  constexpr std::int64_t kMaxSlices = 256;
  const std::int64_t tiles = product_tiles(rows) * product_tiles(columns);
  const std::int64_t wanted = std::min(kMaxSlices, 2 * device.multiprocessors() / tiles);
  const std::int64_t useful = (depth + kShortest - 1) / kShortest;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(wanted, useful)));
}

std::int64_t sum_bytes(const Device& device, std::int64_t rows, std::int64_t columns,
                       std::int64_t max_depth) {
  return slices_for(device, rows, columns, max_depth) * rows * columns *
         static_cast<std::int64_t>(sizeof(float));
}

void add_slices(const Device& device, int slices, std::int64_t count, const float* from,
                float* sums) {
  const unsigned threads = device.threads("linear/add_slices", 256);
  launch(device.stream(), {.blocks = blocks_for(count, threads), .threads = threads},
         add_slices_kernel, slices, count, from, sums);
}

}  // namespace fettle::kernels::cuda
