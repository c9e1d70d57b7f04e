// Linear layer on the packed matrix product (product.h): formulas as reference.h.
//
//   forward     Y  = X  W'     A = rows of X,     B = columns of W'
//   backward    dX = G  W      A = rows of G,     B = columns of W
//               dW += G' X     A = columns of G,  B = columns of X
//
// Weights are packed when they have changed, their columns not before the first backward pass. The
// other operands are packed for every product; that costs 1/samples to 1/outputs of the arithmetic.
// Storage is made at creation.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h), and has_fast_product(plan.type).
std::unique_ptr<WeightedOp> fast_linear(const LinearShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
