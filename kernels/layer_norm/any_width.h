// Layer and RMS norm on a GPU, the first version: any number of channels, any alignment.
// Included by .cu files only.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

// [count, channels], dense.
struct NormRows {
  RowNormKind kind = RowNormKind::kLayer;
  float epsilon = 0;
  std::int64_t count = 0;
  std::int64_t channels = 0;
};

// h = (x - center) factor.
struct RowStatistics {
  float center = 0;
  float factor = 1;
};

// Normalises `a`, or, if there is a `b`, their sum rounded to the type.
struct RowNormForward {
  ConstBuffer a = nullptr;
  ConstBuffer b = nullptr;  // nullptr: none
  Buffer sum = nullptr;     // receives a + b; may be a or b
  const float* scale = nullptr;
  const float* shift = nullptr;  // nullptr: none
  Buffer y = nullptr;
  RowStatistics* statistics = nullptr;
};

struct RowNormBackward {
  ConstBuffer x = nullptr;
  ConstBuffer dy = nullptr;
  const float* scale = nullptr;
  const RowStatistics* statistics = nullptr;
  Buffer dx = nullptr;              // nullptr: not wanted
  bool add = false;                 // to the contents of dx
  float* scale_gradient = nullptr;  // added to, as is
  float* shift_gradient = nullptr;  // nullptr: not wanted
};

void any_width_row_norm_forward(Device& device, DataType type, const NormRows& rows,
                                const RowNormForward& buffers);
void any_width_row_norm_backward(Device& device, DataType type, const NormRows& rows,
                                 const RowNormBackward& buffers);

}  // namespace fettle::kernels::cuda
