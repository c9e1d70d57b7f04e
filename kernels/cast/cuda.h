// Conversions on a GPU, by its own instructions: nearest even, infinite beyond the range, NaN stays
// NaN (but not its bits: every NaN becomes the same one).
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// `type`: bf16 or fp16.
void cuda_round(cuda::Device& device, DataType type, std::int64_t count, const float* from,
                std::uint16_t* to);
void cuda_widen(cuda::Device& device, DataType type, std::int64_t count, const std::uint16_t* from,
                float* to);

}  // namespace fettle::kernels
