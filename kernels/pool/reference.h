// Max and average pooling without padding, CPU reference.
//
//   max       y = largest input of the window; the gradient goes to the first such input.
//             NaN counts as largest, as in PyTorch.
//   average   y = mean of the window; the gradient is spread evenly
//
// Windows may overlap (stride smaller than the kernel): gradients are summed, in order of the
// windows.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<PoolOp> reference_pool(const PoolShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
