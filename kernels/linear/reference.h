// Linear layer, CPU reference.
//
//   forward    y[s, o] = b[o] + sum_i x[s, i] W[o, i],  then max(0, y) where ReLU is fused
//   backward   g = dy, or dy masked by y > 0 where ReLU is fused
//              dx[s, i] = sum_o g[s, o] W[o, i]
//              dW[o, i] += sum_s g[s, o] x[s, i]        db[o] += sum_s g[s, o]
//
// Three matrix products (reference/product.h), each summed in a fixed order.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<WeightedOp> reference_linear(const LinearShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
