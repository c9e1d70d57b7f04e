// The tiles of tile.h by AVX-512: a row of C is two registers, which hold their sums over the whole
// depth.
#include <immintrin.h>

#include <array>
#include <utility>

#include "kernels/linear/tile.h"

// Enables AVX-512 from here on: nothing in this file may be called on a processor without it.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace fettle::kernels {
namespace {

constexpr int kLanesOfRegister = 16;
constexpr int kRegistersOfRow = kTileColumns / kLanesOfRegister;
static_assert(kRegistersOfRow == 2, "the tile's loops are written for two registers a row");

// Computes sum + a * b for one number in each lane.
struct Float32Words {
  [[gnu::always_inline]] static __m512 multiply_add(__m512i a, __m512i b, __m512 sum) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
};

// Computes sum + a0 * b0 + a1 * b1 for a pair in each lane.
struct BFloat16Words {
  [[gnu::always_inline]] static __m512 multiply_add(__m512i a, __m512i b, __m512 sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

template <class Words, int rows>
[[gnu::always_inline]] inline void sum_products(const Tile& tile,
                                                __m512 (&sums)[rows][kRegistersOfRow]) {
  const std::uint32_t* a = tile.a;
  const std::uint32_t* b = tile.b;
  // Here and below 14 is kTileRows: registers have no index, so every loop over rows is unrolled.
#pragma GCC unroll 14
  for (int i = 0; i < rows; ++i) sums[i][0] = sums[i][1] = _mm512_setzero_ps();
  for (std::int64_t k = 0; k < tile.words; ++k, a += tile.a_width, b += kTileColumns) {
    const __m512i left = _mm512_load_si512(b);
    const __m512i right = _mm512_load_si512(b + kLanesOfRegister);
#pragma GCC unroll 14
    for (int i = 0; i < rows; ++i) {
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(a[i]));
      sums[i][0] = Words::multiply_add(factor, left, sums[i][0]);
      sums[i][1] = Words::multiply_add(factor, right, sums[i][1]);
    }
  }
}

// Stores one register of a row of C; `mask` selects the columns that exist.
[[gnu::always_inline]] inline void store_register(const Tile& tile, std::int64_t offset,
                                                  __mmask16 mask, __m512 value) {
  if (tile.store == Store::kWriteBFloat16) {
    auto* c = static_cast<std::uint16_t*>(tile.c) + offset;
    const __m256bh rounded = _mm512_cvtneps_pbh(value);
    _mm256_mask_storeu_epi16(c, mask, reinterpret_cast<__m256i>(rounded));
    return;
  }
  float* c = static_cast<float*>(tile.c) + offset;
  if (tile.store == Store::kAddFloat32) {
    value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), value);
  }
  _mm512_mask_storeu_ps(c, mask, value);
}

// Selects the first `columns` lanes: all for 16 or more, none for 0 or less.
[[gnu::always_inline]] inline __mmask16 mask_of(std::int64_t columns) {
  if (columns >= kLanesOfRegister) return 0xFFFF;
  return columns <= 0 ? __mmask16{0} : static_cast<__mmask16>((1U << columns) - 1);
}

template <int rows>
[[gnu::always_inline]] inline void store_tile(const Tile& tile,
                                              __m512 (&sums)[rows][kRegistersOfRow]) {
  for (int half = 0; half < kRegistersOfRow; ++half) {
    const std::int64_t first = half * kLanesOfRegister;
    const __mmask16 mask = mask_of(tile.columns - first);  // 0 if the first half has all columns
    const __m512 bias =
        tile.bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, tile.bias + first);
#pragma GCC unroll 14
    for (int i = 0; i < rows; ++i) {
      __m512 value = _mm512_add_ps(sums[i][half], bias);
      // If an operand is NaN, the maximum is the second operand, so NaN passes.
      if (tile.relu) value = _mm512_maskz_max_ps(0xFFFF, _mm512_setzero_ps(), value);
      store_register(tile, i * tile.c_stride + first, mask, value);
    }
  }
}

// Prefetches the C that will be added to, while the products are summed.
template <int rows>
[[gnu::always_inline]] inline void prefetch_tile(const Tile& tile) {
  if (tile.store != Store::kAddFloat32) return;
  const float* c = static_cast<const float*>(tile.c);
#pragma GCC unroll 14
  for (int i = 0; i < rows; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(c + i * tile.c_stride), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(c + i * tile.c_stride + kLanesOfRegister),
                 _MM_HINT_T0);
  }
}

template <class Words, int rows>
void compute_tile(const Tile& tile) {
  __m512 sums[rows][kRegistersOfRow];
  prefetch_tile<rows>(tile);
  sum_products<Words>(tile, sums);
  store_tile(tile, sums);
}

template <class Words, int... rows>
constexpr std::array<TileFunction, kTileRows> table(std::integer_sequence<int, rows...>) {
  return {compute_tile<Words, rows + 1>...};
}

}  // namespace

#pragma GCC pop_options

TileFunction avx512_tile(DataType type, std::int64_t rows) {
  static constexpr auto kHeights = std::make_integer_sequence<int, kTileRows>();
  static constexpr auto kFloat32 = table<Float32Words>(kHeights);
  static constexpr auto kBFloat16 = table<BFloat16Words>(kHeights);
  const auto& functions = type == DataType::kFloat32 ? kFloat32 : kBFloat16;
  return functions[static_cast<std::size_t>(rows - 1)];
}

}  // namespace fettle::kernels
