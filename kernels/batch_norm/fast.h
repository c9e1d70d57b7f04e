// Batch normalisation, eight channels at a time (lanes.h): formulas as reference.h.
//
// Memory is the limit, so each direction reads its inputs as seldom as it can: once for the
// statistics and once to normalise. The statistics of a chunk of rows that fits the first-level
// cache are taken in fp32 about the chunk's own mean, and chunks are merged in double (Chan, Golub,
// LeVeque 1979): one pass over memory, without the cancellation of sums of squares.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<BatchNormOp> fast_batch_norm(const BatchNormShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
