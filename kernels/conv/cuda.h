// Convolutions on a GPU: formulas as reference.h.
//
// The weights are used where they lie: they stay in place, and unchanged, until the next
// set_weights.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// The library's, or ours where the build has none, FETTLE_CUDA_OWN asks for it, or the library
// has no plan for the shape. The shape has been checked (shapes.h).
Result<std::unique_ptr<WeightedOp>> cuda_conv(cuda::Device& device, const ConvShape& shape,
                                              const PlanOptions& plan);

// Ours: an implicit matrix product (linear/matrix_product.cuh), every type, fp32 sums.
Result<std::unique_ptr<WeightedOp>> own_conv(cuda::Device& device, const ConvShape& shape,
                                             const PlanOptions& plan);

// cuDNN: tensor cores, NHWC. Not in an emulated build. Errors: what the library says, with the
// shape; kNotFound where it has no plan for it.
Result<std::unique_ptr<WeightedOp>> cudnn_conv(cuda::Device& device, const ConvShape& shape,
                                               const PlanOptions& plan);

}  // namespace fettle::kernels
