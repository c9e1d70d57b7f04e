// Who does a linear layer on a CPU: our own packed product (product.h) or oneDNN's inner product. A
// table by processor, type and shape; pure.
//
// Measured on an AMD EPYC (Zen 4) our product is faster than oneDNN's with AVX-512, in fp32 and in
// bf16 (product.h). A processor with AMX multiplies bf16 in tiles of 16 x 32 by 32 x 16, sixteen
// times what AVX-512 does in a cycle; oneDNN has kernels for that and we have none. fp32 has no
// tiles. A layer that fills no tile stays ours, as padding it would cost what AMX gains.
#pragma once

#include <cstdint>

#include "kernels/operations.h"

namespace fettle::kernels {

// From the least to the most that a processor can.
enum class CpuKind : std::uint8_t { kOther, kAvx512, kAvx512BFloat16, kAmx };

enum class LinearBy : std::uint8_t { kPackedProduct, kOneDnn };

// Whether bf16 arithmetic is only as fast as it should be.
constexpr bool has_bfloat16(CpuKind cpu) { return cpu >= CpuKind::kAvx512BFloat16; }

// `plan`: of a type that the processor has.
LinearBy linear_by(CpuKind cpu, const LinearShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
