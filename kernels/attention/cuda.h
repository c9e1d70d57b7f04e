// Attention on a GPU: formulas as reference.h.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// The library's for bf16 and fp16; ours for fp32, where the build has no library,
// FETTLE_CUDA_OWN asks for it, or the library has no plan for the shape. The shape has been
// checked (shapes.h).
Result<std::unique_ptr<AttentionOp>> cuda_attention(cuda::Device& device,
                                                    const AttentionShape& shape,
                                                    const PlanOptions& plan);

// Ours: every type, fp32 sums. Errors: a head wider than 256.
Result<std::unique_ptr<AttentionOp>> own_attention(cuda::Device& device,
                                                   const AttentionShape& shape,
                                                   const PlanOptions& plan);

// cuDNN's flash attention, on tensor cores. Not in an emulated build. Errors: fp32, and what the
// library says, with the shape; kNotFound where it has no plan for it.
Result<std::unique_ptr<AttentionOp>> cudnn_attention(cuda::Device& device,
                                                     const AttentionShape& shape,
                                                     const PlanOptions& plan);

}  // namespace fettle::kernels
