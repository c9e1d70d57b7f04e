// Operands of our own matrix products, and stores of their results:
//
//   C[i, j] = sum over d of A(i, d) B(j, d)
//
// An operand is any function that gives a number for (index, depth): a matrix, its transpose, or
// the patches of an image (conv/own_conv.cu). It says along which of the two its memory runs, so
// that neighbouring threads can read neighbours.
#pragma once

#include <cstdint>

#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/runtime/platform.h"
#include "kernels/gelu/formulas.h"
#include "kernels/relu/formulas.h"

namespace fettle::kernels::cuda {

// Rows and columns of C, and the length of the sums, cut into slices that are summed afterwards.
struct ProductSize {
  int rows = 0;
  int columns = 0;
  int depth = 0;
  int slices = 1;
};

// A(i, d) = data[i * stride + d]: memory runs along the depth.
template <class T>
struct AlongDepth {
  using Value = T;
  static constexpr bool kAlongDepth = true;
  const T* data;
  std::int64_t stride;
  __device__ T operator()(int index, int depth) const { return data[index * stride + depth]; }
};

// A(i, d) = data[d * stride + i]: the transpose.
template <class T>
struct AcrossDepth {
  using Value = T;
  static constexpr bool kAlongDepth = false;
  const T* data;
  std::int64_t stride;
  __device__ T operator()(int index, int depth) const { return data[depth * stride + index]; }
};

// y = C + bias, then an optional ReLU. `bias` may be nullptr.
template <class T>
struct WriteResult {
  T* y;
  const float* bias;
  bool relu;
  std::int64_t stride;
  __device__ T result(int column, float value) const {
    if (bias != nullptr) value += bias[column];
    if (relu) value = kernels::relu(value);  // not fmaxf, which loses NaN
    return from_float<T>(value);
  }
  __device__ void operator()(int, int row, int column, float value) const {
    y[row * stride + column] = result(column, value);
  }
};

// y as WriteResult, and activated = GELU(y), from y rounded to T, as a separate GELU would read it.
template <GeluForm form, class T>
struct WriteActivated {
  WriteResult<T> plain;
  T* activated;
  __device__ void operator()(int, int row, int column, float value) const {
    const T y = plain.result(column, value);
    const float x = to_float(y);
    plain.y[row * plain.stride + column] = y;
    activated[row * plain.stride + column] = from_float<T>(x * gelu_at<form>(x).share);
  }
};

// dx = C GELU'(x), with C rounded to T.
template <GeluForm form, class T>
struct WriteBySlope {
  T* dx;
  const T* x;
  std::int64_t stride;
  __device__ void operator()(int, int row, int column, float value) const {
    const float slope = gelu_at<form>(to_float(x[row * stride + column])).slope;
    dx[row * stride + column] = from_float<T>(to_float(from_float<T>(value)) * slope);
  }
};

// Writes one slice of the sum, for add_slices.
struct WriteSlice {
  float* slices;
  std::int64_t rows;
  std::int64_t columns;
  __device__ void operator()(int slice, int row, int column, float value) const {
    slices[(slice * rows + row) * columns + column] = value;
  }
};

// Sides of the tile of C that one block computes, in every version.
constexpr int kProductTile = 64;

// A block's part of the product. Blocks: x = tiles of rows; y = tiles of columns, slice by slice.
struct ProductPart {
  int slice;
  int first_row;
  int first_column;
  int begin;  // of the depth
  int end;
};

// `step`: depth of one pass of the block. Slices have whole passes. If they use up the depth early,
// the last slices sum nothing, and their zeros are written like all slices.
__device__ inline ProductPart part_of_block(const ProductSize& size, int step) {
  const int column_tiles = (size.columns + kProductTile - 1) / kProductTile;
  const int passes = (size.depth + step - 1) / step;
  const int of_slice = (passes + size.slices - 1) / size.slices * step;
  ProductPart part{};
  part.slice = static_cast<int>(blockIdx.y) / column_tiles;
  part.first_row = static_cast<int>(blockIdx.x) * kProductTile;
  part.first_column = static_cast<int>(blockIdx.y) % column_tiles * kProductTile;
  part.begin = part.slice * of_slice;
  part.end = min(size.depth, part.begin + of_slice);
  return part;
}

}  // namespace fettle::kernels::cuda
