// 8-bit grids at one point, for every backend, and for whoever writes real 8-bit numbers.
//
// An activation x is the byte q = round(x / scale) + zero, kept within 0 to 255, and stands for
// (q - zero) * scale, as ONNX's QuantizeLinear and DequantizeLinear have it. The grid of a range
// always holds 0 exactly, because convolutions pad with it. `round` is to nearest even. NaN passes:
// a diverged network must look diverged.
//
// A weight w of an output channel is the integer round(w / scale), with a scale for which the
// channel's largest weight is `limit` steps: symmetric, so 0 is 0.
#pragma once

#include <cmath>

#include "kernels/host_device.h"

namespace fettle::kernels {

inline constexpr float kLargestByte = 255;

struct ByteGrid {
  float scale = 1;
  float zero = 0;  // the byte that stands for 0
};

// The grid of the numbers from `lower` to `upper`, and of 0. Nothing but 0 has the scale 1.
FETTLE_HOST_DEVICE inline ByteGrid byte_grid(float lower, float upper) {
  const float least = lower < 0 ? lower : 0;
  const float most = upper > 0 ? upper : 0;
  const float scale = (most - least) / kLargestByte;
  if (!(scale > 0)) return {1, 0};
  const float zero = rintf(-least / scale);
  return {scale, zero < kLargestByte ? zero : kLargestByte};
}

FETTLE_HOST_DEVICE inline float byte_of(const ByteGrid& grid, float x) {
  const float byte = rintf(x / grid.scale) + grid.zero;
  const float above = byte < 0 ? 0 : byte;
  return above > kLargestByte ? kLargestByte : above;
}

FETTLE_HOST_DEVICE inline float on_byte_grid(const ByteGrid& grid, float x) {
  return (byte_of(grid, x) - grid.zero) * grid.scale;
}

// The gradient by x, which rounding lets pass ("straight through"; Bengio et al. 2013): 0 where the
// end of the range cut x off.
FETTLE_HOST_DEVICE inline float byte_grid_gradient(const ByteGrid& grid, float x, float dy) {
  const float byte = rintf(x / grid.scale) + grid.zero;
  return byte < 0 || byte > kLargestByte ? 0 : dy;
}

// An end of a range after a batch that has `seen` as its end: a moving average.
FETTLE_HOST_DEVICE inline float tracked(float end, float seen, float share) {
  return end + share * (seen - end);
}

// `most`: the largest absolute weight.
FETTLE_HOST_DEVICE inline float weight_scale(float most, float limit) {
  return most > 0 ? most / limit : 1;
}

FETTLE_HOST_DEVICE inline float on_weight_grid(float scale, float limit, float weight) {
  const float steps = rintf(weight / scale);
  const float above = steps < -limit ? -limit : steps;
  return (above > limit ? limit : above) * scale;
}

}  // namespace fettle::kernels
