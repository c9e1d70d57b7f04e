// ReLU at one point, for every backend.
//
//   forward    y = max(0, x)          backward   dx = dy where y > 0, else 0
//
// NaN passes in both directions, as in PyTorch: a diverged network must look diverged.
#pragma once

#include "kernels/host_device.h"

namespace fettle::kernels {

FETTLE_HOST_DEVICE inline float relu(float x) { return x < 0 ? 0 : x; }
FETTLE_HOST_DEVICE inline float relu_gradient(float y, float dy) { return y <= 0 ? 0 : dy; }

}  // namespace fettle::kernels
