// Softmax and cross entropy in one, with label smoothing (Szegedy et al., 2016), CPU reference.
//
//   p = softmax(z),  t = (1 - a) onehot(label) + a / classes       a = label_smoothing
//   loss = -sum_c t[c] log p[c]                                     dz = p - t
//
// As torch.nn.functional.cross_entropy with reduction="sum". One row is small and cold beside the
// layers before it, so this is the implementation of every CPU backend.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

std::unique_ptr<SoftmaxCrossEntropyOp> reference_softmax_cross_entropy(std::int64_t classes,
                                                                       DataType type);

}  // namespace fettle::kernels
