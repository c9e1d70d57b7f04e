// Chooses the implementation of a linear layer on a CPU: our own packed product (product.h) or
// oneDNN's inner product. A table by processor, type and shape; pure.
//
// On an AMD EPYC (Zen 4) our product measured faster than oneDNN's with AVX-512, in fp32 and in
// bf16 (product.h). A processor with AMX multiplies bf16 in tiles of 16 x 32 by 32 x 16, with
// sixteen times the throughput of AVX-512; oneDNN has kernels for AMX and we have none. fp32 has no
// tiles. A layer that fills no tile stays ours, as padding it would cost the gain of AMX.
#pragma once

#include <cstdint>

#include "kernels/operations.h"

namespace fettle::kernels {

// Kinds of processors, from the least to the most capable.
enum class CpuKind : std::uint8_t { kOther, kAvx512, kAvx512BFloat16, kAmx };

enum class LinearBy : std::uint8_t { kPackedProduct, kOneDnn };

// Whether the processor has bf16 instructions; without them bf16 is slow.
constexpr bool has_bfloat16(CpuKind cpu) { return cpu >= CpuKind::kAvx512BFloat16; }

// The processor supports the type of `plan`.
LinearBy linear_by(CpuKind cpu, const LinearShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
