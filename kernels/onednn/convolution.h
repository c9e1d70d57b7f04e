// Convolutions, and linear layers as convolutions of one pixel, by oneDNN 2.6 (its v2 interface).
// The only file behind this header is the only one that includes oneDNN and meets its exceptions.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h). Errors: what oneDNN says when it has no implementation.
Result<std::unique_ptr<WeightedOp>> onednn_conv(const ConvShape& shape, const PlanOptions& plan);

// bf16 arithmetic is only as fast as it should be where the processor has it.
bool onednn_has_bfloat16();

}  // namespace fettle::kernels
