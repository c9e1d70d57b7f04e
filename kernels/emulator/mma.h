// CUDA's warp matrix functions (mma.h of the toolkit) for the emulator: a fragment lies in the
// warp's first lane as a whole, and that lane multiplies; the others must come, too. Sums are fp32,
// one after the other along the depth; a tensor core adds several at once, so the last bits differ.
#pragma once

#include <type_traits>

#include "kernels/emulator/cuda_bf16.h"
#include "kernels/emulator/cuda_fp16.h"
#include "kernels/emulator/device_functions.h"

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K, class T, class Layout = void>
class fragment {
 public:
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? K : M;
  static constexpr int kColumns = std::is_same_v<Use, matrix_a> ? K : N;
  float values[kRows][kColumns];  // the emulator's own name: use the functions
};

inline bool is_first_lane() { return fettle::kernels::emulator::lane() == 0; }
inline float widened(float x) { return x; }
inline float widened(__nv_bfloat16 x) { return __bfloat162float(x); }
inline float widened(__half x) { return __half2float(x); }

template <class Use, int M, int N, int K, class T, class Layout>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& to, T value) {
  if (!is_first_lane()) return;
  for (auto& row : to.values) {
    for (float& element : row) element = widened(value);
  }
}

// `stride`: elements between rows, or columns.
template <class Use, int M, int N, int K, class T, class Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& to, const T* from, unsigned stride) {
  __syncwarp();
  if (!is_first_lane()) return;
  constexpr bool kByRow = std::is_same_v<Layout, row_major>;
  for (int i = 0; i < to.kRows; ++i) {
    for (int j = 0; j < to.kColumns; ++j) {
      to.values[i][j] = widened(kByRow ? from[i * stride + j] : from[j * stride + i]);
    }
  }
}

template <int M, int N, int K>
void store_matrix_sync(float* to, const fragment<accumulator, M, N, K, float>& from,
                       unsigned stride, layout_t layout) {
  __syncwarp();
  if (!is_first_lane()) return;
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      to[layout == mem_row_major ? i * stride + j : j * stride + i] = from.values[i][j];
    }
  }
}

// d = a b + c.
template <int M, int N, int K, class T, class LayoutOfA, class LayoutOfB>
void mma_sync(fragment<accumulator, M, N, K, float>& d,
              const fragment<matrix_a, M, N, K, T, LayoutOfA>& a,
              const fragment<matrix_b, M, N, K, T, LayoutOfB>& b,
              const fragment<accumulator, M, N, K, float>& c) {
  if (!is_first_lane()) return;
  for (int i = 0; i < M; ++i) {
    float sums[N];
    for (int j = 0; j < N; ++j) sums[j] = c.values[i][j];
    for (int k = 0; k < K; ++k) {
      for (int j = 0; j < N; ++j) sums[j] += a.values[i][k] * b.values[k][j];
    }
    for (int j = 0; j < N; ++j) d.values[i][j] = sums[j];
  }
}

}  // namespace nvcuda::wmma

// NOLINTEND(readability-identifier-naming)
