// GELU (Hendrycks, Gimpel 2016), CPU reference; the two forms of torch.nn.GELU.
//
//   exact   y = x P(x), P(x) = (1 + erf(x / sqrt 2)) / 2        dx = dy (P(x) + x p(x)), p = P'
//   tanh    y = x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)
//           dx = dy ((1 + tanh u) / 2 + x (1 - tanh^2 u) u' / 2)
//
// The exact form is the default, as in PyTorch; GPT-2 was trained with the other. Computed in
// double, element by element. NaN passes in both directions.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// `max_count`: most elements of a call.
std::unique_ptr<GeluOp> reference_gelu(GeluForm form, std::int64_t max_count, DataType type);

}  // namespace fettle::kernels
