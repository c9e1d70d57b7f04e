// Batch normalisation (Ioffe and Szegedy, 2015), CPU reference; conventions of PyTorch.
//
// Over n = samples x height x width rows, per channel:
//   training    mean = sum x / n,  variance = sum (x - mean)^2 / n
//               y = (x - mean) / sqrt(variance + epsilon) * scale + shift,  then ReLU where fused
//               running_mean     = (1 - momentum) running_mean     + momentum mean
//               running_variance = (1 - momentum) running_variance + momentum variance n / (n - 1)
//   inference   the same y with the running statistics
//   backward    with h = (x - mean) / sqrt(variance + epsilon) and g = dy, masked where ReLU is
//   fused:
//               dshift += sum g,  dscale += sum g h
//               dx = scale / sqrt(variance + epsilon) (g - (sum g + h sum g h) / n)
//
// Sums run in double, in order of the rows. With n = 1 the unbiased variance does not exist; the
// biased one (zero) is used for the running variance.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<BatchNormOp> reference_batch_norm(const BatchNormShape& shape,
                                                  const PlanOptions& plan);

}  // namespace fettle::kernels
