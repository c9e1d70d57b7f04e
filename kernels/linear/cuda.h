// Linear layers on a GPU: formulas as reference.h.
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
Result<std::unique_ptr<LinearOp>> cuda_linear(cuda::Device& device, const LinearShape& shape,
                                              const PlanOptions& plan);

// Ours: tiles in shared memory, every type, fp32 sums (matrix_product.cuh). GELU beside it is
// fused, in both forms: of what has been rounded to the type, so the results are those of GELU by
// itself.
Result<std::unique_ptr<LinearOp>> own_linear(cuda::Device& device, const LinearShape& shape,
                                             const PlanOptions& plan);

// cuBLASLt: tensor cores, bias, ReLU and the tanh form of GELU in the epilogue. GELU goes by itself
// where the library cannot or should not (linear/cublaslt_linear.cpp). Not in an emulated build.
// Errors: what the library says, with the shape; kNotFound where it has no algorithm for it.
Result<std::unique_ptr<LinearOp>> cublaslt_linear(cuda::Device& device, const LinearShape& shape,
                                                  const PlanOptions& plan);

}  // namespace fettle::kernels
