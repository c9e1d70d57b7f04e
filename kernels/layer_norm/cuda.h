// Layer and RMS norm on a GPU; formulas as reference.h.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h). `device` outlives the operation. Errors: too little
// memory.
Result<std::unique_ptr<RowNormOp>> cuda_row_norm(cuda::Device& device, const RowNormShape& shape,
                                                 const PlanOptions& plan);

}  // namespace fettle::kernels
