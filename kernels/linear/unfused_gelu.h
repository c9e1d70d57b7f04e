// A linear layer next to a GELU, composed of the separate operations: for backends where fusion
// gains nothing yet. Same bits as the two in sequence.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// `linear` has this shape; `backend` makes the GELUs. The shape has been checked (shapes.h).
std::unique_ptr<LinearOp> unfused_gelu(Backend& backend, const LinearShape& shape,
                                       const PlanOptions& plan, std::unique_ptr<WeightedOp> linear);

}  // namespace fettle::kernels
