// Batch norm on a GPU: formulas as reference.h, NHWC, in bf16, fp16 or fp32, statistics in fp32.
//
// Bound by bytes, so what counts is how often the activations go by:
//   training forward    3 passes: read x for the statistics; read x and write y
//   inference           2 passes: read x, write y
//   end of a block      1 more: read the shortcut; a sum of its own would be 3, a ReLU 2
//   backward            5 passes: read x and dy for the sums; read x and dy, write dx
//   of a block's end    8: read x, both parts of dy and y, write the masked sum; read x and that,
//                       write dx. With a sum (3) and a ReLU (3) of their own it would be 11
// kernels/emulator/traffic_test.cpp counts them.
//
// The mask of a fused ReLU is worked out again from x, which costs arithmetic but saves the two
// passes that reading y, and the two that writing the masked dy, would take. So `dy` is left as it
// is and `y` is not read.
//
// Sums are made in two stages of fixed order (cuda/columns.cuh): the same batch gives the same
// bits. Deviations are taken from the mean of four rows at a time and merged (Chan et al., 1979),
// so a large mean does not drown a small variance.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h). Errors: the device has too little memory.
Result<std::unique_ptr<BatchNormOp>> cuda_batch_norm(cuda::Device& device,
                                                     const BatchNormShape& shape,
                                                     const PlanOptions& plan);

}  // namespace fettle::kernels
