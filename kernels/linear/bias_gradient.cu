#include "kernels/cuda/columns.cuh"
#include "kernels/linear/add_slices.h"
#include "kernels/linear/bias_gradient.h"

namespace fettle::kernels::cuda {
namespace {

template <class T, int kVector>
__device__ void mask(const Pack<T, kVector>& y, Pack<T, kVector>& dy) {
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    if (!(to_float(y.at[v]) > 0)) dy.at[v] = from_float<T>(0.0F);
  }
}

// slices[slice][channel] = sum of dy over the rows of the slice. `y`: nullptr without ReLU.
template <class T, int kVector>
__global__ void sum_columns(ColumnSums sums, const T* y, T* dy, float* slices) {
  FETTLE_DYNAMIC_SHARED(float, shared);
  using Access = Pack<T, kVector>;
  const ColumnThread<kVector> thread(sums);
  float total[kVector] = {};
  for (std::int64_t row = thread.row; row < thread.end; row += thread.step * kRowsAtOnce) {
    Access values[kRowsAtOnce];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const std::int64_t at = (row + r * thread.step) * sums.channels + thread.channel;
      if (row + r * thread.step >= thread.end) break;
      values[r] = *reinterpret_cast<const Access*>(dy + at);
      if (y == nullptr) continue;
      mask(*reinterpret_cast<const Access*>(y + at), values[r]);
      *reinterpret_cast<Access*>(dy + at) = values[r];
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      if (row + r * thread.step >= thread.end) break;
#pragma unroll
      for (int v = 0; v < kVector; ++v) total[v] += to_float(values[r].at[v]);
    }
  }
  merge_rows<kVector>(sums.lanes, shared, total, [](float a, float b) { return a + b; });
  if (!thread.writes(sums)) return;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    slices[std::int64_t{blockIdx.x} * sums.channels + thread.channel + v] = total[v];
  }
}

// Largest of any number of rows: slices never get fewer when rows are added.
ColumnSums sums_of(const Device& device, DataType type, std::int64_t rows, std::int64_t channels) {
  return with_type(type, [&](auto zero) {
    return column_sums(device, rows, channels, vector_for<decltype(zero)>(channels), kSumThreads);
  });
}

std::int64_t bytes_of(const ColumnSums& sums) {
  return std::int64_t{sums.slices} * sums.channels * static_cast<std::int64_t>(sizeof(float));
}

template <class T, int kVector>
void launch_sums(const Device& device, const ColumnSums& sums, ConstBuffer y, Buffer dy,
                 float* slices) {
  launch(device.stream(), launch_shape(sums, kVector, kSumThreads, sizeof(float)),
         sum_columns<T, kVector>, sums, static_cast<const T*>(y), static_cast<T*>(dy), slices);
}

}  // namespace

BiasGradient::BiasGradient(Device& device, DataType type, std::int64_t channels, bool bias,
                           bool relu)
    : device_(device), type_(type), channels_(channels), bias_(bias), relu_(relu) {}

Status BiasGradient::reserve(std::int64_t max_rows) {
  return device_.reserve_scratch(bytes_of(sums_of(device_, type_, max_rows, channels_)));
}

void BiasGradient::run(std::int64_t rows, ConstBuffer y, Buffer dy, float* bias_gradient) {
  if (!bias_ && !relu_) return;
  const ColumnSums sums = sums_of(device_, type_, rows, channels_);
  auto* slices = static_cast<float*>(device_.scratch(bytes_of(sums)));
  with_type(type_, [&](auto zero) {
    using T = decltype(zero);
    const ConstBuffer mask_by = relu_ ? y : nullptr;
    if (vector_for<T>(channels_) == 1) {
      launch_sums<T, 1>(device_, sums, mask_by, dy, slices);
    } else {
      launch_sums<T, kVectorOf<T>>(device_, sums, mask_by, dy, slices);
    }
  });
  if (bias_) add_slices(device_, sums.slices, channels_, slices, bias_gradient);
}

}  // namespace fettle::kernels::cuda
