// y = y + bias, then max(0, y): the end of a convolution, if no plan of the library fuses it. Bound
// by bytes: reads and writes y once.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

// y: [rows, channels]. `bias`: nullptr for none.
void add_bias(const Device& device, DataType type, std::int64_t rows, std::int64_t channels,
              const float* bias, bool relu, Buffer y);

}  // namespace fettle::kernels::cuda
