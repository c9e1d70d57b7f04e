// Convolution (cross-correlation, as in every deep-learning library), CPU reference.
//
//   y[s, p, q, o] = b[o] + sum_{u, v, c} x[s, p S + u - P, q S + v - P, c] W[o, u, v, c]
//                   then max(0, y) where ReLU is fused; S: stride, P: padding
//
// with x zero outside the image. By "image to columns": each sample is unfolded into a matrix with
// a row for each output pixel and a column for each (u, v, c), and the layer becomes a linear one.
// Sample after sample in order, so the order of summation is fixed and memory is that of one
// sample.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<WeightedOp> reference_conv(const ConvShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
