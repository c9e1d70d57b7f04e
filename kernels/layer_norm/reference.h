// Layer normalisation (Ba, Kiros, Hinton 2016) and RMS normalisation (Zhang, Sennrich 2019), CPU
// reference; conventions of PyTorch.
//
// Every row (the channels of one pixel of one sample) by itself, with n channels:
//   layer      mean = sum x / n,  h = (x - mean) / sqrt(sum (x - mean)^2 / n + epsilon)
//              y = h scale + shift
//   rms        h = x / sqrt(sum x^2 / n + epsilon),  y = h scale
//   backward   with r the factor that made h, and g = dy scale
//              dscale += sum over rows of dy h,  dshift += sum over rows of dy
//              layer   dx = r (g - sum g / n - h sum g h / n)
//              rms     dx = r (g - h sum g h / n)
//
// With `add` dx is added to what lies there, still in double.
//
// Sums run in double, in order of the channels, and over rows in order of the rows.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<RowNormOp> reference_row_norm(const RowNormShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
