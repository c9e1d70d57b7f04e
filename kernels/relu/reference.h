// ReLU, CPU reference.
//
//   forward    y = max(0, x)          backward   dx = dy where y > 0, else 0
//
// NaN passes in both directions, as in PyTorch: a diverged network must look diverged.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/host_device.h"

namespace fettle::kernels {

FETTLE_HOST_DEVICE inline float relu(float x) { return x < 0 ? 0 : x; }
FETTLE_HOST_DEVICE inline float relu_gradient(float y, float dy) { return y <= 0 ? 0 : dy; }

// In place or not.
inline void relu_forward(std::int64_t count, const float* x, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = relu(x[i]);
}

inline void relu_backward(std::int64_t count, const float* y, const float* dy, float* dx) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = relu_gradient(y[i], dy[i]);
}

std::unique_ptr<ReluOp> reference_relu(DataType type);

}  // namespace fettle::kernels
