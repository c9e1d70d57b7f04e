// The embedding on a GPU; formulas as reference.h.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h). `device` outlives the operation. Errors: more tokens than
// 32 bits can count, too little memory.
Result<std::unique_ptr<EmbeddingOp>> cuda_embedding(cuda::Device& device,
                                                    const EmbeddingShape& shape,
                                                    const PlanOptions& plan);

}  // namespace fettle::kernels
