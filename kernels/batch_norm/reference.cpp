// Batch normalisation (Ioffe and Szegedy, 2015), CPU reference; conventions of PyTorch.
//
// Over n = samples x height x width rows, per channel:
//   training    mean = sum x / n,  variance = sum (x - mean)^2 / n
//               y = (x - mean) / sqrt(variance + epsilon) * scale + shift,  then ReLU where fused
//               running_mean     = (1 - momentum) running_mean     + momentum mean
//               running_variance = (1 - momentum) running_variance + momentum variance n / (n - 1)
//   inference   the same y with the running statistics
//   end of a block (BlockEnd)   y = relu(y + shortcut), each if asked for
//   backward    with h = (x - mean) / sqrt(variance + epsilon) and g = dy, masked where a fused
//               ReLU gave zero:
//               dshift += sum g,  dscale += sum g h
//               dx = scale / sqrt(variance + epsilon) (g - (sum g + h sum g h) / n)
//   backward_end  the same with g = dy + other, rounded, and 0 where y <= 0
//
// Sums run in double, in order of the rows. With n = 1 the unbiased variance does not exist; the
// biased one (zero) is used for the running variance.
//
// The end of a block is fp32 arithmetic on numbers not rounded yet, in every backend. So in fp32 it
// gives the bits of batch norm, Backend::add and ReluOp in sequence; in 16 bits it rounds once,
// where the sequence rounds twice: it gives the sequence's fp32 result, rounded.
#include <algorithm>
#include <cmath>

#include "kernels/reference/floats.h"
#include "kernels/reference/fused.h"
#include "kernels/reference_operations.h"
#include "kernels/relu/formulas.h"
#include "kernels/shapes.h"

namespace fettle::kernels {
namespace {

class ReferenceBatchNorm : public BatchNormOp {
 public:
  ReferenceBatchNorm(const BatchNormShape& shape, const PlanOptions& plan)
      : shape_(shape),
        channels_(shape.input.channels),
        x_(plan.type, plan.max_samples * shape.input.size()),
        shortcut_(plan.type, plan.max_samples * shape.input.size()),
        y_(plan.type, plan.max_samples * shape.input.size()),
        dy_(plan.type, plan.max_samples * shape.input.size()),
        dx_(plan.type, plan.max_samples * shape.input.size()),
        mean_(channels_),
        inverse_deviation_(channels_),
        sums_(channels_),
        products_(channels_),
        factor_(channels_) {}

  void forward_training(std::int64_t samples, ConstBuffer x, const float* scale, const float* shift,
                        float* running_mean, float* running_variance, Buffer y,
                        const BlockEnd& end) override {
    check_end(shape_, end);
    const std::int64_t rows = rows_of(samples);
    const float* input = x_.read(x, rows * channels_);
    measure(rows, input);
    const double n = static_cast<double>(rows);
    const double unbiased = rows > 1 ? n / (n - 1) : 1;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double variance = products_[c] / n;
      mean_[c] = static_cast<float>(sums_[c] / n);
      inverse_deviation_[c] = inverse_deviation_of(variance);
      factor_[c] = inverse_deviation_[c] * scale[c];
      move_towards(sums_[c] / n, running_mean[c]);
      move_towards(variance * unbiased, running_variance[c]);
    }
    normalise(rows, input, mean_.data(), shift, end, y);
  }

  void forward_inference(std::int64_t samples, ConstBuffer x, const float* scale,
                         const float* shift, const float* running_mean,
                         const float* running_variance, Buffer y, const BlockEnd& end) override {
    check_end(shape_, end);
    const std::int64_t rows = rows_of(samples);
    for (std::int64_t c = 0; c < channels_; ++c) {
      factor_[c] = inverse_deviation_of(running_variance[c]) * scale[c];
    }
    normalise(rows, x_.read(x, rows * channels_), running_mean, shift, end, y);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, const float* scale,
                Buffer dx, float* scale_gradient, float* shift_gradient) override {
    const std::int64_t rows = rows_of(samples);
    const float* gradient = masked_gradient(shape_.relu, rows * channels_, y_, y, dy_, dy);
    const float* input = x_.read(x, rows * channels_);
    measure_gradient(rows, input, gradient);
    for (std::int64_t c = 0; c < channels_; ++c) {
      scale_gradient[c] += static_cast<float>(products_[c]);
      shift_gradient[c] += static_cast<float>(sums_[c]);
    }
    if (dx == nullptr) return;  // dx is not wanted
    const double n = static_cast<double>(rows);
    float* input_gradient = dx_.target(dx);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const std::int64_t i = row * channels_ + c;
        const double common = (sums_[c] + normalised(input[i], c) * products_[c]) / n;
        input_gradient[i] =
            static_cast<float>(scale[c] * inverse_deviation_[c] * (gradient[i] - common));
      }
    }
    dx_.write(dx, rows * channels_);
  }

  void backward_end(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy,
                    ConstBuffer other, const float* scale, Buffer dx, float* scale_gradient,
                    float* shift_gradient) override {
    check_end(shape_, {.relu = true});  // no ReLU is fused, so backward() masks nothing
    const std::int64_t count = rows_of(samples) * channels_;
    if (other != nullptr) {
      const float* addend = shortcut_.read(other, count);
      float* sum = dy_.edit(dy, count);
      for (std::int64_t i = 0; i < count; ++i) sum[i] += addend[i];
      dy_.write(dy, count);
    }
    // Masks dy in place. Without a ReLU at the end, y is nullptr.
    masked_gradient(y != nullptr, count, y_, y, dy_, dy);
    backward(samples, x, /*y=*/nullptr, dy, scale, dx, scale_gradient, shift_gradient);
  }

 private:
  std::int64_t rows_of(std::int64_t samples) const {
    return samples * shape_.input.height * shape_.input.width;
  }

  float inverse_deviation_of(double variance) const {
    return static_cast<float>(1 / std::sqrt(variance + shape_.epsilon));
  }

  double normalised(float x, std::int64_t c) const {
    return (static_cast<double>(x) - mean_[c]) * inverse_deviation_[c];
  }

  void move_towards(double statistic, float& running) const {
    running = static_cast<float>((1 - shape_.momentum) * static_cast<double>(running) +
                                 shape_.momentum * statistic);
  }

  // Sets sums_ to the sum of x, products_ to the sum of squared deviations from the mean, per
  // channel.
  void measure(std::int64_t rows, const float* x) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    std::fill(products_.begin(), products_.end(), 0.0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < channels_; ++c) sums_[c] += x[row * channels_ + c];
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const double deviation = x[row * channels_ + c] - sums_[c] / static_cast<double>(rows);
        products_[c] += deviation * deviation;
      }
    }
  }

  // Sets sums_ to the sum of the gradient, products_ to the sum of gradient x normalised input.
  void measure_gradient(std::int64_t rows, const float* x, const float* gradient) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    std::fill(products_.begin(), products_.end(), 0.0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const std::int64_t i = row * channels_ + c;
        sums_[c] += gradient[i];
        products_[c] += gradient[i] * normalised(x[i], c);
      }
    }
  }

  // y = (x - mean) factor_ + shift, then plus the shortcut, then ReLU.
  void normalise(std::int64_t rows, const float* x, const float* mean, const float* shift,
                 const BlockEnd& end, Buffer y) {
    const float* shortcut = nullptr;
    if (end.shortcut != nullptr) shortcut = shortcut_.read(end.shortcut, rows * channels_);
    const bool with_relu = shape_.relu || end.relu;
    float* output = y_.target(y);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const std::int64_t i = row * channels_ + c;
        float value = (x[i] - mean[c]) * factor_[c] + shift[c];
        if (shortcut != nullptr) value += shortcut[i];
        output[i] = with_relu ? relu(value) : value;
      }
    }
    y_.write(y, rows * channels_);
  }

  const BatchNormShape shape_;
  const std::int64_t channels_;
  Floats x_, shortcut_, y_, dy_, dx_;
  AlignedArray<float> mean_, inverse_deviation_;  // of the last forward_training
  AlignedArray<double> sums_, products_;
  AlignedArray<float> factor_;  // of the forward under way
};

}  // namespace

std::unique_ptr<BatchNormOp> reference_batch_norm(const BatchNormShape& shape,
                                                  const PlanOptions& plan) {
  return std::make_unique<ReferenceBatchNorm>(shape, plan);
}

}  // namespace fettle::kernels
