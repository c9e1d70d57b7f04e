#include "kernels/cuda/device_code/columns.cuh"
#include "kernels/cuda/device_code/last_block.cuh"
#include "kernels/linear/bias_gradient.h"

namespace fettle::kernels::cuda {
namespace {

// Masks as relu_gradient (relu/formulas.h): dy passes where y is NaN.
template <class T, int kWidth>
__device__ void mask(const Pack<T, kWidth>& y, Pack<T, kWidth>& dy) {
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    if (to_float(y.at[v]) <= 0) dy.at[v] = from_float<T>(0.0F);
  }
}

// Sums the slices of the block's columns, in order, a thread a column, as a separate launch of
// add_slices would. A block has at least as many threads as columns.
template <int kWidth>
__device__ void add_columns(const ColumnSums& sums, const float* slices, float* gradient) {
  const int columns = sums.lanes * kWidth;
  const auto column = static_cast<int>(threadIdx.x);
  const int channel = static_cast<int>(blockIdx.y) * columns + column;
  if (column >= columns || channel >= sums.channels) return;
  float sum = 0;
#pragma unroll 16
  for (int slice = 0; slice < sums.slices; ++slice) {
    sum += __ldcg(slices + std::int64_t{slice} * sums.channels + channel);
  }
  gradient[channel] += sum;
}

// Sets slices[slice][channel] to the sum of dy over the rows of the slice; the last block of some
// columns adds the slices to the gradient. `y`: nullptr without ReLU; `gradient`: nullptr without
// bias; `counters`: one for each blockIdx.y.
template <class T, int kWidth>
__global__ void sum_columns(ColumnSums sums, const T* y, T* dy, float* slices, unsigned* counters,
                            float* gradient) {
  FETTLE_DYNAMIC_SHARED(float, shared);
  const ColumnThread<kWidth> thread(sums);
  float total[kWidth] = {};
  for (std::int64_t row = thread.row; row < thread.end; row += thread.step * kRowsAtOnce) {
    Pack<T, kWidth> values[kRowsAtOnce];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const std::int64_t at = (row + r * thread.step) * sums.channels + thread.channel;
      if (row + r * thread.step >= thread.end) break;
      values[r] = load_pack<kWidth>(dy + at);
      if (y == nullptr) continue;  // without ReLU dy stays as it is
      mask(load_pack<kWidth>(y + at), values[r]);
      store_pack(values[r], dy + at);
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      if (row + r * thread.step >= thread.end) break;
#pragma unroll
      for (int v = 0; v < kWidth; ++v) total[v] += to_float(values[r].at[v]);
    }
  }
  if (gradient == nullptr) return;  // without bias dy is only masked; alike in all threads
  merge_rows<kWidth>(sums.lanes, shared, total, [](float a, float b) { return a + b; });
  if (thread.writes(sums)) {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      slices[std::int64_t{blockIdx.x} * sums.channels + thread.channel + v] = total[v];
    }
  }
  if (!is_last_block(gridDim.x, counters + blockIdx.y)) return;
  add_columns<kWidth>(sums, slices, gradient);
}

int pack_width_of(DataType type, std::int64_t channels) {
  return with_type(type, [&](auto zero) { return pack_width_for<decltype(zero)>(channels); });
}

// More rows never have fewer slices, so scratch for the maximum suffices for any number of rows.
ColumnSums sums_of(const Device& device, DataType type, std::int64_t rows, std::int64_t channels) {
  return column_sums(device, rows, channels, pack_width_of(type, channels), kSumThreads);
}

LaunchShape shape_of(const ColumnSums& sums, int width) {
  return launch_shape(sums, width, kSumThreads, sizeof(float));
}

std::int64_t bytes_of(const ColumnSums& sums) {
  return std::int64_t{sums.slices} * sums.channels * static_cast<std::int64_t>(sizeof(float));
}

template <class T, int kWidth>
void launch_sums(Device& device, const ColumnSums& sums, ConstBuffer y, Buffer dy,
                 float* gradient) {
  static_assert(kMaxLanes * kWidth <= kSumThreads, "a thread sums one column's slices");
  const LaunchShape shape = shape_of(sums, kWidth);
  launch(device.stream(), shape, sum_columns<T, kWidth>, sums, static_cast<const T*>(y),
         static_cast<T*>(dy), static_cast<float*>(device.scratch(bytes_of(sums))),
         device.counters(shape.blocks_y), gradient);
}

}  // namespace

BiasGradient::BiasGradient(Device& device, DataType type, std::int64_t channels, bool bias,
                           bool relu)
    : device_(device), type_(type), channels_(channels), bias_(bias), relu_(relu) {}

Status BiasGradient::reserve(std::int64_t max_rows) {
  const ColumnSums sums = sums_of(device_, type_, max_rows, channels_);
  FETTLE_TRY(device_.reserve_scratch(bytes_of(sums)));
  return device_.reserve_counters(shape_of(sums, pack_width_of(type_, channels_)).blocks_y);
}

void BiasGradient::mask_and_sum(std::int64_t rows, ConstBuffer y, Buffer dy, float* bias_gradient) {
  if (!bias_ && !relu_) return;
  const ColumnSums sums = sums_of(device_, type_, rows, channels_);
  const ConstBuffer mask_by = relu_ ? y : nullptr;
  float* const gradient = bias_ ? bias_gradient : nullptr;
  with_packs(type_, channels_, [&](auto zero, auto width) {
    launch_sums<decltype(zero), width()>(device_, sums, mask_by, dy, gradient);
  });
}

}  // namespace fettle::kernels::cuda
