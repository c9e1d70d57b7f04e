// Matrix product, second version: the same tiles, multiplied by tensor cores. For the 16-bit types.
//
// A block of four warps makes a tile of 64 x 64 of C, 32 x 32 a warp, which are 2 x 2 fragments of
// 16 x 16 (WMMA, CUDA C++ Programming Guide, "Warp Matrix Functions"); the sums stay in fp32. Each
// pass stages 64 x 32 of both operands in shared memory, as they run in device memory, and the
// fragments are told how they lie: nothing is transposed. An element that is staged is used by two
// warps, so shared memory feeds 16 FLOP a byte; that, and not the tensor cores, is the next limit,
// and what the library's kernels do about it (wgmma, which reads whole panels out of shared memory,
// and TMA, which fills them meanwhile) is why it does this work where it can
// (docs/decisions/0017).
#pragma once

#include <mma.h>  // NVIDIA's, or the emulator's (cuda/platform.h)

#include <type_traits>

#include "kernels/linear/matrix_operands.cuh"

namespace fettle::kernels::cuda {

constexpr int kTensorDepth = 32;
constexpr int kTensorThreads = 128;
constexpr int kTensorWarps = 2;  // along each side of the tile
constexpr int kFragment = 16;
constexpr int kTensorEach = kProductTile / kTensorWarps / kFragment;  // fragments of a side

// 64 indices by 32 depths of an operand, rows as in device memory. A fragment begins at a multiple
// of 32 bytes, as WMMA wants it, and the padding keeps rows out of each other's banks.
template <class Operand>
struct TensorPanel {
  using T = typename Operand::Value;
  static constexpr bool kAlong = Operand::kAlongDepth;
  static constexpr int kRow = kAlong ? kTensorDepth : kProductTile;
  static constexpr int kRows = kAlong ? kProductTile : kTensorDepth;
  static constexpr int kPitch = kRow + 8;
  T values[kRows * kPitch];

  __device__ void load(const Operand& operand, int first, int count, int depth, int depth_end) {
#pragma unroll 4
    for (int e = static_cast<int>(threadIdx.x); e < kRow * kRows; e += kTensorThreads) {
      const int d = kAlong ? e % kRow : e / kRow;
      const int i = kAlong ? e / kRow : e % kRow;
      const bool inside = first + i < count && depth + d < depth_end;
      values[e / kRow * kPitch + e % kRow] =
          inside ? operand(first + i, depth + d) : from_float<T>(0.0F);
    }
  }
  __device__ const T* at(int index, int depth) const {
    return values + (kAlong ? index * kPitch + depth : depth * kPitch + index);
  }
};

// A is read as [index, depth] and B as [depth, index].
template <class Operand>
using FragmentOfA = nvcuda::wmma::fragment<
    nvcuda::wmma::matrix_a, kFragment, kFragment, kFragment, typename Operand::Value,
    std::conditional_t<Operand::kAlongDepth, nvcuda::wmma::row_major, nvcuda::wmma::col_major>>;
template <class Operand>
using FragmentOfB = nvcuda::wmma::fragment<
    nvcuda::wmma::matrix_b, kFragment, kFragment, kFragment, typename Operand::Value,
    std::conditional_t<Operand::kAlongDepth, nvcuda::wmma::col_major, nvcuda::wmma::row_major>>;
using FragmentOfC =
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kFragment, kFragment, kFragment, float>;
using TensorSums = FragmentOfC[kTensorEach][kTensorEach];

template <class A, class B>
__device__ void multiply_panels(const TensorPanel<A>& a_panel, const TensorPanel<B>& b_panel,
                                int row, int column, TensorSums& sums) {
#pragma unroll
  for (int depth = 0; depth < kTensorDepth; depth += kFragment) {
    FragmentOfA<A> a[kTensorEach];
    FragmentOfB<B> b[kTensorEach];
#pragma unroll
    for (int i = 0; i < kTensorEach; ++i) {
      nvcuda::wmma::load_matrix_sync(a[i], a_panel.at(row + i * kFragment, depth), a_panel.kPitch);
      nvcuda::wmma::load_matrix_sync(b[i], b_panel.at(column + i * kFragment, depth),
                                     b_panel.kPitch);
    }
#pragma unroll
    for (int i = 0; i < kTensorEach; ++i) {
#pragma unroll
      for (int j = 0; j < kTensorEach; ++j) {
        nvcuda::wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
      }
    }
  }
}

// A warp's sums pass through shared memory: which lane has which of them is the hardware's secret.
constexpr int kTensorSumsPitch = kProductTile + 4;

template <class Store>
__device__ void store_sums(const ProductSize& size, const ProductPart& part, const float* sums,
                           const Store& store) {
#pragma unroll 4
  for (int e = static_cast<int>(threadIdx.x); e < kProductTile * kProductTile;
       e += kTensorThreads) {
    const int i = e / kProductTile;
    const int j = e % kProductTile;
    const int row = part.first_row + i;
    const int column = part.first_column + j;
    if (row < size.rows && column < size.columns) {
      store(part.slice, row, column, sums[i * kTensorSumsPitch + j]);
    }
  }
}

template <class A, class B, class Store>
__global__ void __launch_bounds__(kTensorThreads, 5)
    tensor_product(ProductSize size, A a, B b, Store store) {
  alignas(32) __shared__ TensorPanel<A> a_panel;
  alignas(32) __shared__ TensorPanel<B> b_panel;
  alignas(32) __shared__ float tile[kProductTile * kTensorSumsPitch];
  const ProductPart part = part_of_block(size, kTensorDepth);
  const int warp = static_cast<int>(threadIdx.x) / warpSize;
  const int row = warp / kTensorWarps * (kProductTile / kTensorWarps);
  const int column = warp % kTensorWarps * (kProductTile / kTensorWarps);
  TensorSums sums;
#pragma unroll
  for (auto& some : sums) {
#pragma unroll
    for (FragmentOfC& sum : some) nvcuda::wmma::fill_fragment(sum, 0.0F);
  }
  for (int depth = part.begin; depth < part.end; depth += kTensorDepth) {
    a_panel.load(a, part.first_row, size.rows, depth, part.end);
    b_panel.load(b, part.first_column, size.columns, depth, part.end);
    __syncthreads();
    multiply_panels(a_panel, b_panel, row, column, sums);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kTensorEach; ++i) {
#pragma unroll
    for (int j = 0; j < kTensorEach; ++j) {
      float* to = tile + (row + i * kFragment) * kTensorSumsPitch + column + j * kFragment;
      nvcuda::wmma::store_matrix_sync(to, sums[i][j], kTensorSumsPitch,
                                      nvcuda::wmma::mem_row_major);
    }
  }
  __syncthreads();
  store_sums(size, part, tile, store);
}

}  // namespace fettle::kernels::cuda
