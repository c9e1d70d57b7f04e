// Softmax and cross entropy in one on a GPU; formulas as reference.h.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// `device` outlives the operation.
std::unique_ptr<SoftmaxCrossEntropyOp> cuda_softmax_cross_entropy(cuda::Device& device,
                                                                  std::int64_t classes,
                                                                  DataType type);

}  // namespace fettle::kernels
