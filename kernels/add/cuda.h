// Sums of arrays on a GPU; the same bits as add/loops.h.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels {

// y = a + b, or with `relu` max(0, a + b); y may be one of them.
void cuda_add(cuda::Device& device, DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b,
              Buffer y, bool relu);
// y = y + factor * x.
void cuda_add_scaled(cuda::Device& device, std::int64_t count, float factor, const float* x,
                     float* y);

}  // namespace fettle::kernels
