// Pooling on a GPU; formulas as reference.h.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h). `device` outlives the operation. Errors: too little
// memory.
Result<std::unique_ptr<PoolOp>> cuda_pool(cuda::Device& device, const PoolShape& shape,
                                          const PlanOptions& plan);

}  // namespace fettle::kernels
