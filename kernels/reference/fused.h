// Bias and fused ReLU, shared by the reference's layers. Arrays are [rows, channels], dense.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/reference/floats.h"
#include "kernels/relu/loops.h"

namespace fettle::kernels {

// Starts a sum: sets every row to the bias, or to zeros without a bias.
inline void fill_rows(std::int64_t rows, std::int64_t channels, const float* bias, float* y) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* y_row = y + row * channels;
    if (bias == nullptr) {
      std::fill_n(y_row, channels, 0.0F);
    } else {
      std::copy_n(bias, channels, y_row);
    }
  }
}

// Adds values[r, c] to sums[c], in order of r.
inline void add_rows(std::int64_t rows, std::int64_t channels, const float* values, float* sums) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += values[row * channels + c];
  }
}

// Returns the gradient before a layer's fused ReLU: `dy` itself, or with `relu` overwritten by
// zeros where y is zero.
inline const float* masked_gradient(bool relu, std::int64_t count, Floats& y_floats, ConstBuffer y,
                                    Floats& dy_floats, Buffer dy) {
  if (!relu) return dy_floats.read(dy, count);
  float* gradient = dy_floats.edit(dy, count);
  relu_gradient_all(count, y_floats.read(y, count), gradient, gradient);
  dy_floats.write(dy, count);
  return gradient;
}

}  // namespace fettle::kernels
