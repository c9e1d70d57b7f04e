#include "kernels/conv/add_bias.h"
#include "kernels/cuda/columns.cuh"

namespace fettle::kernels::cuda {
namespace {

constexpr const char* kName = "conv/add_bias";

template <class T, int kVector>
__global__ void add_bias_kernel(ColumnSums grid, const float* __restrict__ bias, bool relu, T* y) {
  using Access = Pack<T, kVector>;
  const ColumnThread<kVector> thread(grid);
  float added[kVector] = {};
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    if (bias != nullptr && thread.channel < grid.channels) added[v] = bias[thread.channel + v];
  }
  for (std::int64_t row = thread.row; row < thread.end; row += thread.step) {
    auto* at = reinterpret_cast<Access*>(y + row * grid.channels + thread.channel);
    Access values = *at;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const float value = to_float(values.at[v]) + added[v];
      values.at[v] = from_float<T>(relu ? fmaxf(value, 0.0F) : value);
    }
    *at = values;
  }
}

template <class T, int kVector>
void launch_add_bias(const Device& device, std::int64_t rows, std::int64_t channels,
                     const float* bias, bool relu, T* y) {
  const unsigned threads = device.launch_config(kName).threads;
  const ColumnSums grid = column_sums(device, rows, channels, kVector, threads);
  launch(device.stream(), launch_shape(grid, kVector, threads, 0), add_bias_kernel<T, kVector>,
         grid, bias, relu, y);
}

}  // namespace

void add_bias(const Device& device, DataType type, std::int64_t rows, std::int64_t channels,
              const float* bias, bool relu, Buffer y) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if (vector_for<T>(channels) == 1) {
      launch_add_bias<T, 1>(device, rows, channels, bias, relu, static_cast<T*>(y));
    } else {
      launch_add_bias<T, kVectorOf<T>>(device, rows, channels, bias, relu, static_cast<T*>(y));
    }
  });
}

}  // namespace fettle::kernels::cuda
