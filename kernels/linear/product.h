// The matrix product of the fast linear layer: AVX-512, fp32 and bf16.
//
// The ladder:
//  1. Three loops. Each product needs two loads, so loads are the limit.
//  2. A tile of C in registers: for each k, kTileRows numbers of A times kTileColumns of B. The
//     tile of 14 x 32 fills 28 of the 32 registers; a k needs 2 loads and 14 broadcasts for its 28
//     multiply-adds, so arithmetic becomes the limit.
//  3. Packed factors (packed.h): loads run from front to back, and the prefetcher hides memory. No
//     further blocking for caches: per k a tile needs under 200 bytes in 28 cycles, which even the
//     third-level cache delivers.
//  4. bf16: the same loop on words of two numbers, with the instruction that multiplies pairs and
//     sums in fp32.
// On one core of an EPYC (Zen 4) the forward pass of 784 -> 512 at 128 samples, packing of the
// input included, ran at 104 GFLOP/s in fp32 and 208 in bf16; oneDNN 2.6's matmul at 512 x 512 x
// 512 at 89 and 145.
//
// The order of summation over k is fixed, whatever the number of threads. Usable from any thread.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/linear/packed.h"

namespace fettle::kernels {

inline constexpr std::int64_t kTileRows = 14;
inline constexpr std::int64_t kTileColumns = 32;  // the width of a packed B

// The store of C: [rows, columns], row-major.
enum class Store : std::uint8_t {
  kAddFloat32,     // C += A B
  kWriteFloat32,   // C = A B + bias, then ReLU
  kWriteBFloat16,  // the same, rounded
};

struct ProductOutput {
  Store store = Store::kWriteFloat32;
  void* c = nullptr;
  const float* bias = nullptr;  // for each column; nullptr: none. Only if C is written
  bool relu = false;            // only if C is written
};

// Returns the width for packing A with `rows` rows: tiles of even height, at most kTileRows.
std::int64_t tile_rows_for(std::int64_t rows);

// Computes C from packed A (any width up to kTileRows) and packed B (of width kTileColumns), both
// of `type` and with the same number of words.
void multiply_packed(DataType type, const PackedMatrix& a, const PackedMatrix& b,
                     const ProductOutput& output);

}  // namespace fettle::kernels
