// ReLU on a GPU; formulas as reference.h.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// `device` outlives the operation.
std::unique_ptr<ReluOp> cuda_relu(cuda::Device& device, DataType type);

}  // namespace fettle::kernels
