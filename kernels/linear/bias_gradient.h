// What the backward pass of a layer with weights does before its products: masks dy by the fused
// ReLU and sums the bias gradient, in one pass over dy. Shared by linear layers and
// convolutions, ours and the libraries'.
// A pass over dy and, with ReLU, over y; dy is written back only with ReLU.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

class BiasGradient {
 public:
  // `bias`: there is one; `relu`: it is fused.
  BiasGradient(Device& device, DataType type, std::int64_t channels, bool bias, bool relu);
  // What calls of up to `max_rows` rows need of the workspace.
  Status reserve(std::int64_t max_rows);
  // dy and y: [rows, channels]. bias_gradient[c] += sum of the masked dy[., c].
  void mask_and_sum(std::int64_t rows, ConstBuffer y, Buffer dy, float* bias_gradient);

 private:
  Device& device_;
  const DataType type_;
  const std::int64_t channels_;
  const bool bias_;
  const bool relu_;
};

}  // namespace fettle::kernels::cuda
