// A linear layer next to a GELU, put together from the operations by themselves: for backends where
// fusing them gains nothing yet, and bit for bit what the two give one after the other.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// `linear` is of this shape; the GELUs are the backend's. The shape has been checked (shapes.h).
std::unique_ptr<LinearOp> beside_gelu(Backend& backend, const LinearShape& shape,
                                      const PlanOptions& plan, std::unique_ptr<WeightedOp> linear);

}  // namespace fettle::kernels
