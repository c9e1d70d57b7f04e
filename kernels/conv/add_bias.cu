#include "kernels/conv/add_bias.h"
#include "kernels/cuda/device_code/columns.cuh"
#include "kernels/relu/formulas.h"

namespace fettle::kernels::cuda {
namespace {

// `grid`: blocks and threads as for column sums, though nothing is summed.
template <class T, int kWidth>
__global__ void add_bias_kernel(ColumnSums grid, const float* __restrict__ bias, bool relu, T* y) {
  const ColumnThread<kWidth> thread(grid);
  float added[kWidth] = {};
  // A thread past the last channel has no rows, but `bias` ends before its channel.
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    if (bias != nullptr && thread.channel < grid.channels) added[v] = bias[thread.channel + v];
  }
  for (std::int64_t row = thread.row; row < thread.end; row += thread.step) {
    T* const at = y + row * grid.channels + thread.channel;
    Pack<T, kWidth> values = load_pack<kWidth>(at);
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      const float value = to_float(values.at[v]) + added[v];
      values.at[v] = from_float<T>(relu ? kernels::relu(value) : value);
    }
    store_pack(values, at);
  }
}

template <class T, int kWidth>
void launch_add_bias(const Device& device, std::int64_t rows, std::int64_t channels,
                     const float* bias, bool relu, T* y) {
  const ColumnSums grid = column_sums(device, rows, channels, kWidth, kBlockThreads);
  launch(device.stream(), launch_shape(grid, kWidth, kBlockThreads, /*bytes_of_value=*/0),
         add_bias_kernel<T, kWidth>, grid, bias, relu, y);
}

}  // namespace

void add_bias(const Device& device, DataType type, std::int64_t rows, std::int64_t channels,
              const float* bias, bool relu, Buffer y) {
  with_packs(type, channels, [&](auto zero, auto width) {
    using T = decltype(zero);
    launch_add_bias<T, width()>(device, rows, channels, bias, relu, static_cast<T*>(y));
  });
}

}  // namespace fettle::kernels::cuda
