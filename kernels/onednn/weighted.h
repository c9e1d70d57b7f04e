// Convolutions and linear layers by oneDNN 2.6 (its v2 interface). The only file behind this header
// is the only one that includes oneDNN and meets its exceptions.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/linear/choice.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h). Errors: what oneDNN says when it has no implementation.
Result<std::unique_ptr<WeightedOp>> onednn_conv(const ConvShape& shape, const PlanOptions& plan);
// Without GELUs, which the shape may have beside it.
Result<std::unique_ptr<WeightedOp>> onednn_linear(const LinearShape& shape,
                                                  const PlanOptions& plan);

// What oneDNN may use of this processor.
CpuKind onednn_cpu();

}  // namespace fettle::kernels
