// Convolutions and linear layers by oneDNN 2.6 (its v2 interface). weighted.cpp is the only file
// that includes oneDNN and meets its exceptions.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/linear/choice.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h). Errors: oneDNN's message if it has no implementation.
Result<std::unique_ptr<WeightedOp>> onednn_conv(const ConvShape& shape, const PlanOptions& plan);
// Ignores the GELUs that the shape may have beside it.
Result<std::unique_ptr<WeightedOp>> onednn_linear(const LinearShape& shape,
                                                  const PlanOptions& plan);

// The kind of processor that oneDNN may use.
CpuKind onednn_cpu();

}  // namespace fettle::kernels
