// Max and average pooling, eight channels at a time (lanes.h). Results as reference.h; averages
// up to rounding.
//
// The place of each maximum is kept in 16 bits. Where windows do not
// overlap, backward writes every gradient once; where they do, it sums one image in fp32.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<PoolOp> fast_pool(const PoolShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
