// The second stage of sums (of products and biases) that were cut into slices for parallelism.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

// Adds from[0][i] + from[1][i] + ... to sums[i], in this order; from: [slices, count].
void add_slices(const Device& device, int slices, std::int64_t count, const float* from,
                float* sums);
// The same with one slice of any type.
void add_slice(const Device& device, DataType type, std::int64_t count, ConstBuffer from,
               float* sums);

}  // namespace fettle::kernels::cuda
