// Matrix product in tiles of shared memory, the "simple" step of the ladder of linear layers and
// convolutions:
//
//   C[i, j] = sum over d of A(i, d) B(j, d)
//
// where A and B are whatever gives a number for (index, depth): a matrix, its transpose, or the
// patches of an image (conv/simple.cu). A block of 256 threads makes a tile of 64 x 64 of C, 4 x 4
// a thread, in fp32 whatever the operands' type. Each pass stages 64 x 16 of both operands in
// shared memory, so an element is read from device memory once for 64 multiplications: enough to
// be bound by the fp32 units (67 TFLOP/s on an H100), a fifteenth of what its tensor cores do in
// bf16. That is why the library does this work where it can (docs/decisions/0017), and this is
// what it is compared with.
//
// A product with few tiles and a long sum, as a weight gradient, is cut along the depth; the
// slices are added up in order by add_slices, so the same operands give the same bits.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/platform.h"
#include "kernels/linear/add_slices.h"

namespace fettle::kernels::cuda {

constexpr int kProductTile = 64;
constexpr int kProductDepth = 16;
constexpr int kProductThreads = 256;
constexpr int kProductEach = 4;  // rows and columns of a thread
// Keeps columns of a staged tile out of each other's banks, and rows 16-byte aligned.
constexpr int kProductPitch = kProductTile + 4;

// Rows and columns of C, and the length of the sums.
struct ProductSize {
  int rows = 0;
  int columns = 0;
  int depth = 0;
  int slices = 1;
};

// A(i, d) = data[i * stride + d]: memory runs along the depth.
template <class T>
struct AlongDepth {
  static constexpr bool kAlongDepth = true;
  const T* data;
  std::int64_t stride;
  __device__ float operator()(int index, int depth) const {
    return to_float(data[index * stride + depth]);
  }
};

// A(i, d) = data[d * stride + i]: the transpose.
template <class T>
struct AcrossDepth {
  static constexpr bool kAlongDepth = false;
  const T* data;
  std::int64_t stride;
  __device__ float operator()(int index, int depth) const {
    return to_float(data[depth * stride + index]);
  }
};

// y = C + bias, then ReLU where asked for. `bias` may be nullptr.
template <class T>
struct WriteResult {
  T* y;
  const float* bias;
  bool relu;
  std::int64_t stride;
  __device__ void operator()(int, int row, int column, float value) const {
    if (bias != nullptr) value += bias[column];
    if (relu) value = fmaxf(value, 0.0F);
    y[row * stride + column] = from_float<T>(value);
  }
};

// One slice of the sum, for add_slices.
struct WriteSlice {
  float* slices;
  std::int64_t rows;
  std::int64_t columns;
  __device__ void operator()(int slice, int row, int column, float value) const {
    slices[(slice * rows + row) * columns + column] = value;
  }
};

using ProductPanel = float[kProductDepth][kProductPitch];

// Neighbouring threads read neighbouring memory.
template <class Operand>
__device__ void load_panel(const Operand& operand, int first, int count, int depth, int depth_end,
                           ProductPanel& panel) {
  constexpr int kElements = kProductTile * kProductDepth;
#pragma unroll
  for (int e = static_cast<int>(threadIdx.x); e < kElements; e += kProductThreads) {
    const int d = Operand::kAlongDepth ? e % kProductDepth : e / kProductTile;
    const int i = Operand::kAlongDepth ? e / kProductDepth : e % kProductTile;
    const bool inside = first + i < count && depth + d < depth_end;
    panel[d][i] = inside ? operand(first + i, depth + d) : 0.0F;
  }
}

using ProductSums = float[kProductEach][kProductEach];

__device__ inline void multiply_panels(const ProductPanel& a, const ProductPanel& b, int row,
                                       int column, ProductSums& sums) {
#pragma unroll
  for (int d = 0; d < kProductDepth; ++d) {
    float of_a[kProductEach];
    float of_b[kProductEach];
#pragma unroll
    for (int i = 0; i < kProductEach; ++i) of_a[i] = a[d][row + i];
#pragma unroll
    for (int j = 0; j < kProductEach; ++j) of_b[j] = b[d][column + j];
#pragma unroll
    for (int i = 0; i < kProductEach; ++i) {
#pragma unroll
      for (int j = 0; j < kProductEach; ++j) sums[i][j] += of_a[i] * of_b[j];
    }
  }
}

// Blocks: x = tiles of rows; y = tiles of columns, slice by slice.
template <class A, class B, class Store>
__global__ void __launch_bounds__(kProductThreads)
    tiled_product(ProductSize size, A a, B b, Store store) {
  alignas(16) __shared__ ProductPanel a_panel;
  alignas(16) __shared__ ProductPanel b_panel;
  const int column_tiles = (size.columns + kProductTile - 1) / kProductTile;
  const int slice = static_cast<int>(blockIdx.y) / column_tiles;
  const int first_row = static_cast<int>(blockIdx.x) * kProductTile;
  const int first_column = static_cast<int>(blockIdx.y) % column_tiles * kProductTile;
  const int passes = (size.depth + kProductDepth - 1) / kProductDepth;
  const int passes_a_slice = (passes + size.slices - 1) / size.slices;
  const int begin = slice * passes_a_slice * kProductDepth;
  const int end = min(size.depth, begin + passes_a_slice * kProductDepth);
  const int row = static_cast<int>(threadIdx.x) / (kProductTile / kProductEach) * kProductEach;
  const int column = static_cast<int>(threadIdx.x) % (kProductTile / kProductEach) * kProductEach;
  ProductSums sums = {};
  for (int depth = begin; depth < end; depth += kProductDepth) {
    load_panel(a, first_row, size.rows, depth, end, a_panel);
    load_panel(b, first_column, size.columns, depth, end, b_panel);
    __syncthreads();
    multiply_panels(a_panel, b_panel, row, column, sums);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kProductEach; ++i) {
#pragma unroll
    for (int j = 0; j < kProductEach; ++j) {
      const int r = first_row + row + i;
      const int c = first_column + column + j;
      if (r < size.rows && c < size.columns) store(slice, r, c, sums[i][j]);
    }
  }
}

// ---- On the host -------------------------------------------------------------------------------

inline std::int64_t product_tiles(std::int64_t count) {
  return (count + kProductTile - 1) / kProductTile;
}

// A product counts its rows, columns and depth in 31 bits, and tiles of columns in 16. Errors: one
// of them is more.
Status check_product(std::int64_t rows, std::int64_t columns, std::int64_t depth);

template <class A, class B, class Store>
void multiply_tiled(const Device& device, const ProductSize& size, const A& a, const B& b,
                    const Store& store) {
  const LaunchShape shape{
      .blocks = static_cast<unsigned>(product_tiles(size.rows)),
      .blocks_y = static_cast<unsigned>(product_tiles(size.columns) * size.slices),
      .threads = kProductThreads};
  launch(device.stream(), shape, tiled_product<A, B, Store>, size, a, b, store);
}

// A sum over `depth` that is added to what is there: a weight gradient. `scratch` of the device
// must have been reserved: sum_bytes() of the longest depth.
int slices_for(const Device& device, std::int64_t rows, std::int64_t columns, std::int64_t depth);
std::int64_t sum_bytes(const Device& device, std::int64_t rows, std::int64_t columns,
                       std::int64_t max_depth);
// sums[i] += slices[0][i] + slices[1][i] + ..., in this order.
void add_slices(const Device& device, int slices, std::int64_t count, const float* from,
                float* sums);

template <class A, class B>
void add_product_tiled(Device& device, ProductSize size, const A& a, const B& b, float* sums) {
  size.slices = slices_for(device, size.rows, size.columns, size.depth);
  auto* slices =
      static_cast<float*>(device.scratch(sum_bytes(device, size.rows, size.columns, size.depth)));
  multiply_tiled(device, size, a, b, WriteSlice{slices, size.rows, size.columns});
  add_slices(device, size.slices, std::int64_t{size.rows} * size.columns, slices, sums);
}

}  // namespace fettle::kernels::cuda
