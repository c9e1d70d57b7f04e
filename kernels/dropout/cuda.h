// Dropout on a GPU; the mask is mask.h's, bit for bit.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// `device` outlives the operation.
std::unique_ptr<DropoutOp> cuda_dropout(cuda::Device& device, float rate,
                                        std::int64_t elements_per_sample, DataType type);

}  // namespace fettle::kernels
