// ReLU, vectorised: reference.h's loops compiled for AVX-512, AVX2 and plain x86-64; the processor
// decides at start-up. The same bits as the reference. Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// In place or not.
void fast_relu_backward(DataType type, std::int64_t count, ConstBuffer y, ConstBuffer dy,
                        Buffer dx);

// fp32 or bf16.
std::unique_ptr<ReluOp> fast_relu(DataType type);

}  // namespace fettle::kernels
