// GELU in its tanh form for the fast backend; formulas as reference.h, with
// (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), eight numbers at a time in fp32.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// fp32 or bf16.
std::unique_ptr<GeluOp> fast_tanh_gelu(DataType type);

}  // namespace fettle::kernels
