// A block a row, an element a thread at a time, and every sum a walk over the row: forward reads x
// three times (mean, variance, result), backward x and dy four times in all. Rows of a few thousand
// channels stay in the first-level cache meanwhile, so the walks cost instructions and waiting
// rather than bytes of device memory. layer_norm.cu keeps the row in registers instead, if it fits.
//
// Gradients of scale and shift: a thread a channel walks all rows. This suits rows that are too
// long for layer_norm.cu, which have more channels than a GPU has threads; many short rows need
// strips.
#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/reduce.h"
#include "kernels/layer_norm/any_width.h"

namespace fettle::kernels::cuda {
namespace {

// Returns the sum over the row's channels of value(c), to every thread of the block.
template <class Value>
__device__ float sum_of_row(std::int64_t channels, Value value) {
  float sum = 0;
  for (std::int64_t c = threadIdx.x; c < channels; c += blockDim.x) sum += value(c);
  return block_sum(sum);
}

template <class T>
__device__ RowStatistics measure(const NormRows& rows, const T* x) {
  const auto n = static_cast<float>(rows.channels);
  float center = 0;
  if (rows.kind == RowNormKind::kLayer) {
    center = sum_of_row(rows.channels, [&](std::int64_t c) { return to_float(x[c]); }) / n;
    // Adds the mean of the deviations: beside a large mean rounding makes the first sum inexact.
    center +=
        sum_of_row(rows.channels, [&](std::int64_t c) { return to_float(x[c]) - center; }) / n;
  }
  const float squares = sum_of_row(rows.channels, [&](std::int64_t c) {
    const float deviation = to_float(x[c]) - center;
    return deviation * deviation;
  });
  return {center, rsqrtf(squares / n + rows.epsilon)};
}

// Returns the row to normalise. If it is a sum, each thread first writes the channels that it will
// read, so no thread waits.
template <class T>
__device__ const T* row_of(const NormRows& rows, const RowNormForward& buffers, std::int64_t row) {
  const T* a = static_cast<const T*>(buffers.a) + row * rows.channels;
  if (buffers.b == nullptr) return a;
  const T* b = static_cast<const T*>(buffers.b) + row * rows.channels;
  T* sum = static_cast<T*>(buffers.sum) + row * rows.channels;
  for (std::int64_t c = threadIdx.x; c < rows.channels; c += blockDim.x) {
    sum[c] = from_float<T>(to_float(a[c]) + to_float(b[c]));
  }
  return sum;
}

template <class T>
__global__ void forward_kernel(NormRows rows, RowNormForward buffers) {
  for (std::int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
    const T* in = row_of<T>(rows, buffers, row);  // a sum is written first
    T* out = static_cast<T*>(buffers.y) + row * rows.channels;
    const RowStatistics of_row = measure(rows, in);
    for (std::int64_t c = threadIdx.x; c < rows.channels; c += blockDim.x) {
      const float h = (to_float(in[c]) - of_row.center) * of_row.factor;
      const float shift = buffers.shift == nullptr ? 0 : buffers.shift[c];
      out[c] = from_float<T>(h * buffers.scale[c] + shift);
    }
    if (threadIdx.x == 0) buffers.statistics[row] = of_row;
  }
}

template <class T>
__global__ void input_gradient_kernel(NormRows rows, RowNormBackward buffers) {
  const auto n = static_cast<float>(rows.channels);
  for (std::int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
    const T* x = static_cast<const T*>(buffers.x) + row * rows.channels;
    const T* dy = static_cast<const T*>(buffers.dy) + row * rows.channels;
    T* dx = static_cast<T*>(buffers.dx) + row * rows.channels;
    const RowStatistics of_row = buffers.statistics[row];
    const auto h = [&](std::int64_t c) { return (to_float(x[c]) - of_row.center) * of_row.factor; };
    const auto g = [&](std::int64_t c) { return to_float(dy[c]) * buffers.scale[c]; };
    const float sum = sum_of_row(rows.channels, g);
    const float product = sum_of_row(rows.channels, [&](std::int64_t c) { return g(c) * h(c); });
    const float mean = rows.kind == RowNormKind::kLayer ? sum / n : 0;
    for (std::int64_t c = threadIdx.x; c < rows.channels; c += blockDim.x) {
      const float gradient = of_row.factor * (g(c) - mean - h(c) * product / n);
      dx[c] = from_float<T>(buffers.add ? to_float(dx[c]) + gradient : gradient);
    }
  }
}

template <class T>
__global__ void parameter_gradients_kernel(NormRows rows, RowNormBackward buffers) {
  const std::int64_t c = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= rows.channels) return;
  const T* x = static_cast<const T*>(buffers.x) + c;
  const T* dy = static_cast<const T*>(buffers.dy) + c;
  float scale_sum = 0;
  float shift_sum = 0;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const RowStatistics of_row = buffers.statistics[row];
    const float gradient = to_float(dy[row * rows.channels]);
    scale_sum += gradient * (to_float(x[row * rows.channels]) - of_row.center) * of_row.factor;
    shift_sum += gradient;
  }
  buffers.scale_gradient[c] += scale_sum;
  if (buffers.shift_gradient != nullptr) buffers.shift_gradient[c] += shift_sum;
}

constexpr unsigned kThreads = 256;

}  // namespace

void any_width_row_norm_forward(Device& device, DataType type, const NormRows& rows,
                                const RowNormForward& buffers) {
  with_type(type, [&](auto zero) {
    launch(device.stream(), {.blocks = blocks_for(rows.count, 1), .threads = kThreads},
           forward_kernel<decltype(zero)>, rows, buffers);
  });
}

void any_width_row_norm_backward(Device& device, DataType type, const NormRows& rows,
                                 const RowNormBackward& buffers) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(device.stream(), {.blocks = blocks_for(rows.channels, kThreads), .threads = kThreads},
           parameter_gradients_kernel<T>, rows, buffers);
    if (buffers.dx == nullptr) return;
    launch(device.stream(), {.blocks = blocks_for(rows.count, 1), .threads = kThreads},
           input_gradient_kernel<T>, rows, buffers);
  });
}

}  // namespace fettle::kernels::cuda
