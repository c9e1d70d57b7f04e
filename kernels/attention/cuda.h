// Attention on a GPU: formulas as reference.h.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// The library's where it takes such heads (cudnn_takes); ours otherwise, where the build has no
// library, FETTLE_CUDA_OWN asks for it, or the library has no plan for the shape. The shape has
// been checked (shapes.h).
Result<std::unique_ptr<AttentionOp>> cuda_attention(cuda::Device& device,
                                                    const AttentionShape& shape,
                                                    const PlanOptions& plan);

// Ours: every type, fp32 sums. `log_sums`: where forward leaves the log-sum-exp of each query's
// scores for backward, fp32, [max_samples, heads, length]; nullptr: in memory of its own. Errors: a
// head wider than 256.
Result<std::unique_ptr<AttentionOp>> own_attention(cuda::Device& device,
                                                   const AttentionShape& shape,
                                                   const PlanOptions& plan,
                                                   Buffer log_sums = nullptr);

// Whether cuDNN is asked for such heads at all: in bf16 and fp16, widths of multiples of 8 up to
// 128. Wider ones it has forward, but backward for some lengths only.
bool cudnn_takes(const AttentionShape& shape, DataType type);

// cuDNN's flash attention, on tensor cores. Not in an emulated build. Errors: what the library
// says, with the shape.
Result<std::unique_ptr<AttentionOp>> cudnn_attention(cuda::Device& device,
                                                     const AttentionShape& shape,
                                                     const PlanOptions& plan);

}  // namespace fettle::kernels
