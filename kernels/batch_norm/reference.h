// Batch normalisation (Ioffe and Szegedy, 2015), CPU reference; conventions of PyTorch.
//
// Over n = samples x height x width rows, per channel:
//   training    mean = sum x / n,  variance = sum (x - mean)^2 / n
//               y = (x - mean) / sqrt(variance + epsilon) * scale + shift,  then ReLU where fused
//               running_mean     = (1 - momentum) running_mean     + momentum mean
//               running_variance = (1 - momentum) running_variance + momentum variance n / (n - 1)
//   inference   the same y with the running statistics
//   end of a block (BlockEnd)   y = relu(y + shortcut), each if asked for
//   backward    with h = (x - mean) / sqrt(variance + epsilon) and g = dy, masked where a fused
//               ReLU gave zero:
//               dshift += sum g,  dscale += sum g h
//               dx = scale / sqrt(variance + epsilon) (g - (sum g + h sum g h) / n)
//   backward_end  the same with g = dy + other, rounded, and 0 where y <= 0
//
// Sums run in double, in order of the rows. With n = 1 the unbiased variance does not exist; the
// biased one (zero) is used for the running variance.
//
// The end of a block is fp32 arithmetic on numbers not rounded yet, in every backend. So in fp32 it
// gives the bits of batch norm, Backend::add and ReluOp one after the other; in 16 bits it rounds
// once, where these three round twice: it gives what they would in fp32, rounded.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<BatchNormOp> reference_batch_norm(const BatchNormShape& shape,
                                                  const PlanOptions& plan);

}  // namespace fettle::kernels
