// NHWC, in bf16, fp16 or fp32, statistics in fp32.
//
// Bound by bytes, so the number of passes over the activations counts:
//   training forward    3 passes: read x for the statistics; read x and write y
//   inference           2 passes: read x, write y
//   end of a block      1 more: read the shortcut; a separate sum would be 3, a ReLU 2
//   backward            5 passes: read x and dy for the sums; read x and dy, write dx
//   of a block's end    8: read x, both parts of dy and y, write the masked sum; read x and that,
//                       write dx. With a separate sum (3) and ReLU (3) it would be 11
// kernels/emulator/traffic_test.cpp counts them.
//
// The mask of a fused ReLU is computed again from x, which costs arithmetic but saves the two
// passes that reading y, and the two that writing the masked dy, would take. So `dy` is unchanged
// and `y` is not read.
//
// Sums are made in two stages of fixed order (cuda/device_code/columns.cuh): the same batch gives
// the same bits. Deviations are taken from the mean of four rows at a time and merged (Chan et al.,
// 1979), so a large mean does not drown a small variance.
#include "kernels/cuda/device_code/columns.cuh"
#include "kernels/cuda/device_code/reduce.h"
#include "kernels/cuda/operations.h"
#include "kernels/relu/formulas.h"
#include "kernels/shapes.h"

namespace fettle::kernels {
namespace {

using cuda::ColumnSums;
using cuda::ColumnThread;
using cuda::from_float;
using cuda::kRowsAtOnce;
using cuda::kWarpSize;
using cuda::load_pack;
using cuda::Pack;
using cuda::store_pack;
using cuda::to_float;

// The mean of some of a channel's values, and the sum of squared deviations from it.
struct Moments {
  float count = 0;
  float mean = 0;
  float squares = 0;
};

__device__ Moments merge(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0) return a;  // both are of threads without rows; not 0 / 0
  const float share = b.count / count;
  const float difference = b.mean - a.mean;
  return {count, a.mean + difference * share,
          a.squares + b.squares + difference * difference * a.count * share};
}

// Sums over a channel's gradients g: of g, and of g x normalised x.
struct GradientSums {
  float gradient = 0;
  float product = 0;
};

__device__ GradientSums merge(const GradientSums& a, const GradientSums& b) {
  return {a.gradient + b.gradient, a.product + b.product};
}

// Values per channel from the last forward_training, for its backward.
struct Saved {
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* factor;   // inverse x scale
  float* shift;
  // Set by backward: the means of g and of (g x normalised x), the second times inverse, because
  // input_gradients multiplies it by x - mean.
  float* gradient_mean;
  float* slope;
};
constexpr int kSavedArrays = 6;

// One channel of Saved in registers.
struct Line {
  float mean, factor, shift;
  __device__ float at(float x) const { return (x - mean) * factor + shift; }
};

template <int kWidth>
struct Lines {
  Line of[kWidth];
};

// Calls visit(r, row) for up to kRows of the thread's rows, unrolled.
template <int kRows = kRowsAtOnce, int kWidth, class Visit>
__device__ void for_rows(const ColumnThread<kWidth>& thread, std::int64_t first, Visit visit) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t row = first + r * thread.step;
    if (row < thread.end) visit(r, row);
  }
}

// ---- Forward -----------------------------------------------------------------------------------

// Merges the moments of one to four rows, held in registers, into the earlier moments.
template <class T, int kWidth>
__device__ void add_moments(const Pack<T, kWidth> (&values)[kRowsAtOnce], int rows,
                            Moments (&moments)[kWidth]) {
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    float sum = 0;
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) sum += r < rows ? to_float(values[r].at[v]) : 0;
    const auto count = static_cast<float>(rows);
    const float mean = sum / count;
    float squares = 0;
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const float deviation = r < rows ? to_float(values[r].at[v]) - mean : 0;
      squares += deviation * deviation;
    }
    moments[v] = merge(moments[v], {count, mean, squares});
  }
}

// Writes slices[channel][slice], so that the second stage reads in order.
template <class T, int kWidth>
__global__ void measure(ColumnSums sums, const T* __restrict__ x, Moments* __restrict__ slices) {
  FETTLE_DYNAMIC_SHARED(Moments, shared);
  const ColumnThread<kWidth> thread(sums);
  Moments moments[kWidth] = {};
  for (std::int64_t row = thread.row; row < thread.end; row += thread.step * kRowsAtOnce) {
    Pack<T, kWidth> values[kRowsAtOnce] = {};
    int rows = 0;
    for_rows(thread, row, [&](int r, std::int64_t at) {
      values[r] = load_pack<kWidth>(x + at * sums.channels + thread.channel);
      ++rows;  // only the last rows can be missing, so values[0, rows) are loaded
    });
    add_moments(values, rows, moments);
  }
  cuda::merge_rows<kWidth>(sums.lanes, shared, moments,
                           [](const Moments& a, const Moments& b) { return merge(a, b); });
  if (!thread.writes(sums)) return;
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    slices[std::int64_t{thread.channel + v} * sums.slices + blockIdx.x] = moments[v];
  }
}

__device__ Moments from_lane(const Moments& value, int reach) {
  return {__shfl_xor_sync(0xFFFFFFFFU, value.count, reach),
          __shfl_xor_sync(0xFFFFFFFFU, value.mean, reach),
          __shfl_xor_sync(0xFFFFFFFFU, value.squares, reach)};
}

__device__ GradientSums from_lane(const GradientSums& value, int reach) {
  return {__shfl_xor_sync(0xFFFFFFFFU, value.gradient, reach),
          __shfl_xor_sync(0xFFFFFFFFU, value.product, reach)};
}

// Sums the slices of one channel in a warp, in the same order each time; lane 0 has the result.
template <class Value>
__device__ Value merge_slices(const Value* slices, int count, int channel, int lane) {
  Value sum;
  for (int slice = lane; slice < count; slice += kWarpSize) {
    sum = merge(sum, slices[std::int64_t{channel} * count + slice]);
  }
  for (int reach = kWarpSize / 2; reach > 0; reach /= 2) sum = merge(sum, from_lane(sum, reach));
  return sum;
}

struct Running {
  float* mean;
  float* variance;
  float momentum;
  float epsilon;
};

__device__ void move_towards(float statistic, float momentum, float& running) {
  running = (1 - momentum) * running + momentum * statistic;
}

// One warp a channel.
__global__ void finish_moments(ColumnSums sums, const Moments* slices, const float* scale,
                               const float* shift, Running running, Saved saved) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int channel = thread / kWarpSize;
  const int lane = thread % kWarpSize;
  if (channel >= sums.channels) return;
  const Moments all = merge_slices(slices, sums.slices, channel, lane);
  if (lane != 0) return;
  const float variance = all.squares / all.count;
  const float inverse = 1 / sqrtf(variance + running.epsilon);
  saved.mean[channel] = all.mean;
  saved.inverse[channel] = inverse;
  saved.factor[channel] = inverse * scale[channel];
  saved.shift[channel] = shift[channel];
  const float unbiased = all.count > 1 ? all.squares / (all.count - 1) : variance;  // not by 0
  move_towards(all.mean, running.momentum, running.mean[channel]);
  move_towards(unbiased, running.momentum, running.variance[channel]);
}

__global__ void prepare_inference(int channels, const float* scale, const float* shift,
                                  Running running, Saved saved) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (channel >= channels) return;
  saved.mean[channel] = running.mean[channel];
  saved.factor[channel] = scale[channel] / sqrtf(running.variance[channel] + running.epsilon);
  saved.shift[channel] = shift[channel];
}

template <int kWidth>
__device__ Lines<kWidth> lines_of(const Saved& saved, const ColumnThread<kWidth>& thread,
                                  int channels) {
  Lines<kWidth> lines = {};
  if (thread.channel >= channels) return lines;  // such a thread has no rows (ColumnThread)
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    const int c = thread.channel + v;
    lines.of[v] = {saved.mean[c], saved.factor[c], saved.shift[c]};
  }
  return lines;
}

// `shortcut` is read with kShortcut only: without it the kernel saves the registers for it.
template <class T, int kWidth, bool kShortcut>
__global__ void normalise(ColumnSums sums, Saved saved, bool with_relu, const T* __restrict__ x,
                          const T* __restrict__ shortcut, T* __restrict__ y) {
  const ColumnThread<kWidth> thread(sums);
  const Lines<kWidth> lines = lines_of(saved, thread, sums.channels);
  for (std::int64_t row = thread.row; row < thread.end; row += thread.step * kRowsAtOnce) {
    Pack<T, kWidth> values[kRowsAtOnce];
    Pack<T, kWidth> summands[kShortcut ? kRowsAtOnce : 1];
    for_rows(thread, row, [&](int r, std::int64_t at) {
      values[r] = load_pack<kWidth>(x + at * sums.channels + thread.channel);
      if constexpr (kShortcut) {
        summands[r] = load_pack<kWidth>(shortcut + at * sums.channels + thread.channel);
      }
    });
    for_rows(thread, row, [&](int r, std::int64_t at) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        float value = lines.of[v].at(to_float(values[r].at[v]));
        if constexpr (kShortcut) value += to_float(summands[r].at[v]);
        values[r].at[v] = from_float<T>(with_relu ? relu(value) : value);
      }
      store_pack(values[r], y + at * sums.channels + thread.channel);
    });
  }
}

// ---- Backward ----------------------------------------------------------------------------------

// Returns g: dy, or with a fused ReLU zero where the rounded y of the forward pass was zero.
template <class T>
__device__ float masked(bool with_relu, const Line& line, float x, T dy) {
  if (!with_relu) return to_float(dy);
  return relu_gradient(to_float(from_float<T>(line.at(x))), to_float(dy));
}

template <class T>
struct Gradients {
  const T* x;
  T* dy;
  bool relu;
  // For the end of a block, else nullptr: the other part of the gradient, and the end's output.
  const T* other;
  const T* y;
};

// Replaces dy of some rows, here and in memory, by the gradient before the end of the block.
template <int kRows, class T, int kWidth>
__device__ void pass_end(const ColumnThread<kWidth>& thread, std::int64_t row, int channels,
                         const Gradients<T>& from, Pack<T, kWidth> (&dy)[kRows]) {
  Pack<T, kWidth> other[kRows] = {};
  Pack<T, kWidth> y[kRows] = {};
  for_rows<kRows>(thread, row, [&](int r, std::int64_t at) {
    const std::int64_t i = at * channels + thread.channel;
    if (from.other != nullptr) other[r] = load_pack<kWidth>(from.other + i);
    if (from.y != nullptr) y[r] = load_pack<kWidth>(from.y + i);
  });
  for_rows<kRows>(thread, row, [&](int r, std::int64_t at) {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      T& gradient = dy[r].at[v];
      if (from.other != nullptr) {
        gradient = from_float<T>(to_float(gradient) + to_float(other[r].at[v]));
      }
      if (from.y != nullptr) {
        gradient = from_float<T>(relu_gradient(to_float(y[r].at[v]), to_float(gradient)));
      }
    }
    store_pack(dy[r], from.dy + at * channels + thread.channel);
  });
}

// kEnd: the end of a block, which has no fused ReLU. It reads twice as many arrays, so half as many
// rows at once.
template <class T, int kWidth, bool kEnd>
__global__ void measure_gradients(ColumnSums sums, Saved saved, Gradients<T> from,
                                  GradientSums* __restrict__ slices) {
  FETTLE_DYNAMIC_SHARED(GradientSums, shared);
  constexpr int kRows = kEnd ? kRowsAtOnce / 2 : kRowsAtOnce;
  const ColumnThread<kWidth> thread(sums);
  const Lines<kWidth> lines = lines_of(saved, thread, sums.channels);
  GradientSums totals[kWidth] = {};
  for (std::int64_t row = thread.row; row < thread.end; row += thread.step * kRows) {
    Pack<T, kWidth> x[kRows];
    Pack<T, kWidth> dy[kRows];
    for_rows<kRows>(thread, row, [&](int r, std::int64_t at) {
      x[r] = load_pack<kWidth>(from.x + at * sums.channels + thread.channel);
      dy[r] = load_pack<kWidth>(from.dy + at * sums.channels + thread.channel);
    });
    if constexpr (kEnd) pass_end<kRows>(thread, row, sums.channels, from, dy);
    for_rows<kRows>(thread, row, [&](int r, std::int64_t) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        const float value = to_float(x[r].at[v]);
        const float gradient = masked(!kEnd && from.relu, lines.of[v], value, dy[r].at[v]);
        totals[v].gradient += gradient;
        totals[v].product += gradient * (value - lines.of[v].mean);
      }
    });
  }
  cuda::merge_rows<kWidth>(
      sums.lanes, shared, totals,
      [](const GradientSums& a, const GradientSums& b) { return merge(a, b); });
  if (!thread.writes(sums)) return;
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    slices[std::int64_t{thread.channel + v} * sums.slices + blockIdx.x] = totals[v];
  }
}

// One warp a channel. The products in `slices` are g x (x - mean), without `inverse`.
__global__ void finish_gradients(ColumnSums sums, const GradientSums* slices, Saved saved,
                                 float* scale_gradient, float* shift_gradient) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int channel = thread / kWarpSize;
  const int lane = thread % kWarpSize;
  if (channel >= sums.channels) return;
  const GradientSums all = merge_slices(slices, sums.slices, channel, lane);
  if (lane != 0) return;
  const float product = all.product * saved.inverse[channel];
  scale_gradient[channel] += product;
  shift_gradient[channel] += all.gradient;
  const auto rows = static_cast<float>(sums.rows);
  saved.gradient_mean[channel] = all.gradient / rows;
  saved.slope[channel] = product * saved.inverse[channel] / rows;
}

// dx = scale x inverse x (g - mean of g - normalised x x mean of (g x normalised x))
// Takes half as many rows at once as measure_gradients, so that two blocks fit a multiprocessor and
// one loads while the other computes and stores.
template <class T, int kWidth>
__global__ void input_gradients(ColumnSums sums, Saved saved, Gradients<T> from,
                                const float* __restrict__ scale, T* __restrict__ dx) {
  constexpr int kRows = kRowsAtOnce / 2;
  const ColumnThread<kWidth> thread(sums);
  const Lines<kWidth> lines = lines_of(saved, thread, sums.channels);
  float factor[kWidth] = {};
  float gradient_mean[kWidth] = {};
  float slope[kWidth] = {};
#pragma unroll
  for (int v = 0; v < kWidth && thread.channel < sums.channels; ++v) {
    const int c = thread.channel + v;
    factor[v] = scale[c] * saved.inverse[c];
    gradient_mean[v] = saved.gradient_mean[c];
    slope[v] = saved.slope[c];
  }
  for (std::int64_t row = thread.row; row < thread.end; row += thread.step * kRows) {
    Pack<T, kWidth> x[kRows];
    Pack<T, kWidth> dy[kRows];
    for_rows<kRows>(thread, row, [&](int r, std::int64_t at) {
      x[r] = load_pack<kWidth>(from.x + at * sums.channels + thread.channel);
      dy[r] = load_pack<kWidth>(from.dy + at * sums.channels + thread.channel);
    });
    for_rows<kRows>(thread, row, [&](int r, std::int64_t at) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        const float value = to_float(x[r].at[v]);
        const float gradient = masked(from.relu, lines.of[v], value, dy[r].at[v]);
        const float common = gradient_mean[v] + (value - lines.of[v].mean) * slope[v];
        x[r].at[v] = from_float<T>(factor[v] * (gradient - common));
      }
      store_pack(x[r], dx + at * sums.channels + thread.channel);
    });
  }
}

// ---- The operation -----------------------------------------------------------------------------

class CudaBatchNorm : public BatchNormOp {
 public:
  CudaBatchNorm(cuda::Device& device, const BatchNormShape& shape, DataType type,
                std::unique_ptr<Memory> trained, std::unique_ptr<Memory> inferred)
      : device_(device),
        shape_(shape),
        type_(type),
        trained_(std::move(trained)),
        inferred_(std::move(inferred)) {}

  // Reserves the workspace for calls of up to `max_samples`.
  Status reserve(std::int64_t max_samples) {
    return device_.reserve_scratch(slices_bytes(sums_of(max_samples)));
  }

  // Bytes of a Saved, whose arrays lie one after the other.
  static std::int64_t saved_bytes(std::int64_t channels) {
    return kSavedArrays * channels * static_cast<std::int64_t>(sizeof(float));
  }

  void forward_training(std::int64_t samples, ConstBuffer x, const float* scale, const float* shift,
                        float* running_mean, float* running_variance, Buffer y,
                        const BlockEnd& end) override {
    check_end(shape_, end);
    const ColumnSums sums = sums_of(samples);
    auto* slices = static_cast<Moments*>(device_.scratch(slices_bytes(sums)));
    cuda::with_packs(type_, channels(), [&](auto zero, auto width) {
      using T = decltype(zero);
      constexpr int kWidth = width();
      launch(shape_of(sums, kWidth, sizeof(Moments)), measure<T, kWidth>, sums,
             static_cast<const T*>(x), slices);
    });
    const Running running{running_mean, running_variance, shape_.momentum, shape_.epsilon};
    launch(warp_a_channel(), finish_moments, sums, slices, scale, shift, running,
           saved_in(*trained_));
    normalise_all(sums, *trained_, x, end, y);
  }

  void forward_inference(std::int64_t samples, ConstBuffer x, const float* scale,
                         const float* shift, const float* running_mean,
                         const float* running_variance, Buffer y, const BlockEnd& end) override {
    check_end(shape_, end);
    // prepare_inference only reads them.
    const Running running{const_cast<float*>(running_mean), const_cast<float*>(running_variance),
                          shape_.momentum, shape_.epsilon};
    const unsigned threads = cuda::kSumThreads;
    launch({.blocks = cuda::blocks_for(channels(), threads), .threads = threads}, prepare_inference,
           static_cast<int>(channels()), scale, shift, running, saved_in(*inferred_));
    normalise_all(sums_of(samples), *inferred_, x, end, y);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer, Buffer dy, const float* scale,
                Buffer dx, float* scale_gradient, float* shift_gradient) override {
    const Read read{.x = x, .dy = dy, .other = nullptr, .y = nullptr, .of_end = false};
    step_back(samples, read, scale, dx, scale_gradient, shift_gradient);
  }

  void backward_end(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy,
                    ConstBuffer other, const float* scale, Buffer dx, float* scale_gradient,
                    float* shift_gradient) override {
    check_end(shape_, {.relu = true});  // refuses a layer with a fused ReLU
    const Read read{.x = x, .dy = dy, .other = other, .y = y, .of_end = true};
    step_back(samples, read, scale, dx, scale_gradient, shift_gradient);
  }

 private:
  // Operands of a backward pass: x and dy for `backward`, all for `backward_end`.
  struct Read {
    ConstBuffer x;
    Buffer dy;
    ConstBuffer other, y;
    bool of_end;  // backward_end
  };

  // Does backward, or with read.of_end backward_end, in which read.dy becomes dy + other, masked by
  // y.
  void step_back(std::int64_t samples, const Read& read, const float* scale, Buffer dx,
                 float* scale_gradient, float* shift_gradient) {
    const ColumnSums sums = sums_of(samples);
    const Saved saved = saved_in(*trained_);
    auto* slices = static_cast<GradientSums*>(device_.scratch(slices_bytes(sums)));
    cuda::with_packs(type_, channels(), [&](auto zero, auto width) {
      using T = decltype(zero);
      constexpr int kWidth = width();
      const Gradients<T> from{static_cast<const T*>(read.x), static_cast<T*>(read.dy), shape_.relu,
                              static_cast<const T*>(read.other), static_cast<const T*>(read.y)};
      const auto measure_all =
          read.of_end ? measure_gradients<T, kWidth, true> : measure_gradients<T, kWidth, false>;
      launch(shape_of(sums, kWidth, sizeof(GradientSums)), measure_all, sums, saved, from, slices);
      launch(warp_a_channel(), finish_gradients, sums, slices, saved, scale_gradient,
             shift_gradient);
      if (dx == nullptr) return;  // dx is not wanted
      launch(shape_of(sums, kWidth, /*bytes_of_value=*/0), input_gradients<T, kWidth>, sums, saved,
             from, scale, static_cast<T*>(dx));
    });
  }

  std::int64_t channels() const { return shape_.input.channels; }

  ColumnSums sums_of(std::int64_t samples) const {
    const std::int64_t rows = samples * shape_.input.height * shape_.input.width;
    return cuda::with_type(type_, [&](auto zero) {
      return cuda::column_sums(device_, rows, channels(),
                               cuda::pack_width_for<decltype(zero)>(channels()), cuda::kSumThreads);
    });
  }

  // Bytes for the Moments of a forward; the GradientSums of a backward need less.
  std::int64_t slices_bytes(const ColumnSums& sums) const {
    return std::int64_t{sums.slices} * channels() * static_cast<std::int64_t>(sizeof(Moments));
  }

  // `bytes_of_value`: size of the values that merge_rows merges; 0 if the kernel does not call it.
  cuda::LaunchShape shape_of(const ColumnSums& sums, int width, std::size_t bytes_of_value) const {
    return cuda::launch_shape(sums, width, cuda::kSumThreads, bytes_of_value);
  }

  cuda::LaunchShape warp_a_channel() const {
    const unsigned threads = cuda::kSumThreads;
    return {.blocks = cuda::blocks_for(channels() * kWarpSize, threads), .threads = threads};
  }

  Saved saved_in(Memory& memory) const {
    auto* first = static_cast<float*>(memory.data());
    const std::int64_t n = channels();
    return {first, first + n, first + 2 * n, first + 3 * n, first + 4 * n, first + 5 * n};
  }

  void normalise_all(const ColumnSums& sums, Memory& saved, ConstBuffer x, const BlockEnd& end,
                     Buffer y) {
    cuda::with_packs(type_, channels(), [&](auto zero, auto width) {
      using T = decltype(zero);
      constexpr int kWidth = width();
      const auto kernel =
          end.shortcut != nullptr ? normalise<T, kWidth, true> : normalise<T, kWidth, false>;
      launch(shape_of(sums, kWidth, /*bytes_of_value=*/0), kernel, sums, saved_in(saved),
             shape_.relu || end.relu, static_cast<const T*>(x), static_cast<const T*>(end.shortcut),
             static_cast<T*>(y));
    });
  }

  template <class Kernel, class... Arguments>
  void launch(const cuda::LaunchShape& shape, Kernel kernel, Arguments... arguments) {
    cuda::launch(device_.stream(), shape, kernel, arguments...);
  }

  cuda::Device& device_;
  const BatchNormShape shape_;
  const DataType type_;
  std::unique_ptr<Memory> trained_;   // a Saved, from the last forward_training
  std::unique_ptr<Memory> inferred_;  // from the last forward_inference
};

}  // namespace

Result<std::unique_ptr<BatchNormOp>> cuda_batch_norm(cuda::Device& device,
                                                     const BatchNormShape& shape,
                                                     const PlanOptions& plan) {
  const std::int64_t bytes = CudaBatchNorm::saved_bytes(shape.input.channels);
  FETTLE_ASSIGN(auto trained, device.allocate(bytes));
  FETTLE_ASSIGN(auto inferred, device.allocate(bytes));
  auto op = std::make_unique<CudaBatchNorm>(device, shape, plan.type, std::move(trained),
                                            std::move(inferred));
  FETTLE_TRY(op->reserve(plan.max_samples));
  return std::unique_ptr<BatchNormOp>(std::move(op));
}

}  // namespace fettle::kernels
