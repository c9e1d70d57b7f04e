// GELU on a GPU; formulas.h in fp32.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// `device` outlives the operation.
std::unique_ptr<GeluOp> cuda_gelu(cuda::Device& device, GeluForm form, DataType type);

}  // namespace fettle::kernels
