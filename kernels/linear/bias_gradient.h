// The first step of the backward pass of a layer with weights: masks dy by the fused ReLU and sums
// the bias gradient, in one pass over dy. Shared by linear layers and convolutions, ours and the
// libraries'.
// Reads dy and, with ReLU, y; writes dy back only with ReLU.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

class BiasGradient {
 public:
  // `bias`: the layer has one; `relu`: it is fused.
  BiasGradient(Device& device, DataType type, std::int64_t channels, bool bias, bool relu);
  // Reserves the workspace for calls of up to `max_rows` rows.
  Status reserve(std::int64_t max_rows);
  // Masks dy and adds the sum of the masked dy[., c] to bias_gradient[c]. dy and y: [rows,
  // channels].
  void mask_and_sum(std::int64_t rows, ConstBuffer y, Buffer dy, float* bias_gradient);

 private:
  Device& device_;
  const DataType type_;
  const std::int64_t channels_;
  const bool bias_;
  const bool relu_;
};

}  // namespace fettle::kernels::cuda
