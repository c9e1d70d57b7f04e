// Matrix product: tiles of shared memory, multiplied by the fp32 units.
//
// A block of 256 threads computes a tile of 64 x 64 of C, 4 x 4 a thread, in fp32 whatever the
// operands' type. Each pass stages 64 x 16 of both operands in shared memory, so an element is read
// from device memory once for 64 multiplications: enough to be bound by the fp32 units (67 TFLOP/s
// on an H100). In 16 bits the library's tensor-core kernels are fifteen times as fast. This product
// is their comparison, and should be simple.
#pragma once

#include "kernels/linear/matrix_operands.cuh"

namespace fettle::kernels::cuda {

constexpr int kTiledDepth = 16;
constexpr int kTiledThreads = 256;
constexpr int kTiledEach = 4;  // rows and columns of a thread
// Keeps columns of a staged tile out of each other's banks, and rows 16-byte aligned.
constexpr int kTiledPitch = kProductTile + 4;

using TiledPanel = float[kTiledDepth][kTiledPitch];

// Neighbouring threads read neighbouring memory.
template <class Operand>
__device__ void load_panel(const Operand& operand, int first, int count, int depth, int depth_end,
                           TiledPanel& panel) {
  constexpr int kElements = kProductTile * kTiledDepth;
#pragma unroll
  for (int e = static_cast<int>(threadIdx.x); e < kElements; e += kTiledThreads) {
    const int d = Operand::kAlongDepth ? e % kTiledDepth : e / kProductTile;
    const int i = Operand::kAlongDepth ? e / kTiledDepth : e % kProductTile;
    const bool inside = first + i < count && depth + d < depth_end;
    panel[d][i] = inside ? to_float(operand(first + i, depth + d)) : 0.0F;
  }
}

using TiledSums = float[kTiledEach][kTiledEach];

__device__ inline void multiply_panels(const TiledPanel& a, const TiledPanel& b, int row,
                                       int column, TiledSums& sums) {
#pragma unroll
  for (int d = 0; d < kTiledDepth; ++d) {
    float of_a[kTiledEach];
    float of_b[kTiledEach];
#pragma unroll
    for (int i = 0; i < kTiledEach; ++i) of_a[i] = a[d][row + i];
#pragma unroll
    for (int j = 0; j < kTiledEach; ++j) of_b[j] = b[d][column + j];
#pragma unroll
    for (int i = 0; i < kTiledEach; ++i) {
#pragma unroll
      for (int j = 0; j < kTiledEach; ++j) sums[i][j] += of_a[i] * of_b[j];
    }
  }
}

template <class A, class B, class Store>
__global__ void __launch_bounds__(kTiledThreads, 4)
    tiled_product(ProductSize size, A a, B b, Store store) {
  alignas(16) __shared__ TiledPanel a_panel;
  alignas(16) __shared__ TiledPanel b_panel;
  const ProductPart part = part_of_block(size, kTiledDepth);
  const int row = static_cast<int>(threadIdx.x) / (kProductTile / kTiledEach) * kTiledEach;
  const int column = static_cast<int>(threadIdx.x) % (kProductTile / kTiledEach) * kTiledEach;
  TiledSums sums = {};
  for (int depth = part.begin; depth < part.end; depth += kTiledDepth) {
    load_panel(a, part.first_row, size.rows, depth, part.end, a_panel);
    load_panel(b, part.first_column, size.columns, depth, part.end, b_panel);
    __syncthreads();  // the panels are complete
    multiply_panels(a_panel, b_panel, row, column, sums);
    __syncthreads();  // all have read them: the next pass may load
  }
#pragma unroll
  for (int i = 0; i < kTiledEach; ++i) {
#pragma unroll
    for (int j = 0; j < kTiledEach; ++j) {
      const int r = part.first_row + row + i;
      const int c = part.first_column + column + j;
      if (r < size.rows && c < size.columns) store(part.slice, r, c, sums[i][j]);
    }
  }
}

}  // namespace fettle::kernels::cuda
