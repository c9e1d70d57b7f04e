// Layer normalisation (Ba, Kiros, Hinton 2016) and RMS normalisation (Zhang, Sennrich 2019), CPU
// reference; conventions of PyTorch.
//
// Every row (the channels of one pixel of one sample) is normalised by itself, with n channels:
//   layer      mean = sum x / n,  h = (x - mean) / sqrt(sum (x - mean)^2 / n + epsilon)
//              y = h scale + shift
//   rms        h = x / sqrt(sum x^2 / n + epsilon),  y = h scale
//   backward   with r the factor that made h, and g = dy scale
//              dscale += sum over rows of dy h,  dshift += sum over rows of dy
//              layer   dx = r (g - sum g / n - h sum g h / n)
//              rms     dx = r (g - h sum g h / n)
//
// With `add`, dx is added to the contents of its buffer, still in double.
//
// Sums run in double, in order of the channels, and over rows in order of the rows.
#include <algorithm>
#include <cmath>

#include "kernels/add/loops.h"
#include "kernels/reference/floats.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

class ReferenceRowNorm : public RowNormOp {
 public:
  ReferenceRowNorm(const RowNormShape& shape, const PlanOptions& plan)
      : shape_(shape),
        type_(plan.type),
        channels_(shape.input.channels),
        x_(plan.type, plan.max_samples * shape.input.size()),
        y_(plan.type, plan.max_samples * shape.input.size()),
        dy_(plan.type, plan.max_samples * shape.input.size()),
        dx_(plan.type, plan.max_samples * shape.input.size()),
        centers_(plan.max_samples * shape.input.height * shape.input.width),
        factors_(centers_.size()),
        scale_sums_(channels_),
        shift_sums_(channels_) {}

  void forward(std::int64_t samples, ConstBuffer x, const float* scale, const float* shift,
               Buffer y) override {
    const std::int64_t rows = rows_of(samples);
    const float* input = x_.read(x, rows * channels_);
    float* output = y_.target(y);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* in = input + row * channels_;
      float* out = output + row * channels_;
      measure(row, in);
      for (std::int64_t c = 0; c < channels_; ++c) {
        const double offset = shift == nullptr ? 0 : shift[c];
        out[c] = static_cast<float>(normalised(row, in[c]) * scale[c] + offset);
      }
    }
    y_.write(y, rows * channels_);
  }

  void forward_sum(std::int64_t samples, ConstBuffer a, ConstBuffer b, Buffer sum,
                   const float* scale, const float* shift, Buffer y) override {
    add_typed(type_, rows_of(samples) * channels_, a, b, sum, /*relu=*/false);
    forward(samples, sum, scale, shift, y);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer dy, const float* scale, Buffer dx,
                bool add, float* scale_gradient, float* shift_gradient) override {
    const std::int64_t rows = rows_of(samples);
    const float* input = x_.read(x, rows * channels_);
    const float* gradient = dy_.read(dy, rows * channels_);
    add_parameter_gradients(rows, input, gradient, scale_gradient, shift_gradient);
    if (dx == nullptr) return;
    float* input_gradient = add ? dx_.edit(dx, rows * channels_) : dx_.target(dx);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t first = row * channels_;
      write_input_gradient(row, input + first, gradient + first, scale, input_gradient + first,
                           add);
    }
    dx_.write(dx, rows * channels_);
  }

 private:
  std::int64_t rows_of(std::int64_t samples) const {
    return samples * shape_.input.height * shape_.input.width;
  }

  double normalised(std::int64_t row, float x) const {
    return (static_cast<double>(x) - centers_[row]) * factors_[row];
  }

  // Computes the center and factor of h = (x - center) factor for one row; kept for backward.
  void measure(std::int64_t row, const float* x) {
    const auto n = static_cast<double>(channels_);
    double sum = 0;
    if (shape_.kind == RowNormKind::kLayer) {
      for (std::int64_t c = 0; c < channels_; ++c) sum += x[c];
    }
    const double center = sum / n;  // RMS: 0
    double squares = 0;
    for (std::int64_t c = 0; c < channels_; ++c) squares += (x[c] - center) * (x[c] - center);
    centers_[row] = center;
    factors_[row] = 1 / std::sqrt(squares / n + shape_.epsilon);
  }

  void add_parameter_gradients(std::int64_t rows, const float* x, const float* dy,
                               float* scale_gradient, float* shift_gradient) {
    std::fill(scale_sums_.begin(), scale_sums_.end(), 0.0);
    std::fill(shift_sums_.begin(), shift_sums_.end(), 0.0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const std::int64_t i = row * channels_ + c;
        scale_sums_[c] += dy[i] * normalised(row, x[i]);
        shift_sums_[c] += dy[i];
      }
    }
    for (std::int64_t c = 0; c < channels_; ++c) {
      scale_gradient[c] += static_cast<float>(scale_sums_[c]);
      if (shift_gradient != nullptr) shift_gradient[c] += static_cast<float>(shift_sums_[c]);
    }
  }

  void write_input_gradient(std::int64_t row, const float* x, const float* dy, const float* scale,
                            float* dx, bool add) const {
    const auto n = static_cast<double>(channels_);
    double sum = 0;
    double product = 0;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double g = static_cast<double>(dy[c]) * scale[c];
      sum += g;
      product += g * normalised(row, x[c]);
    }
    const double mean = shape_.kind == RowNormKind::kLayer ? sum / n : 0;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double g = static_cast<double>(dy[c]) * scale[c];
      const double common = mean + normalised(row, x[c]) * product / n;
      const double gradient = factors_[row] * (g - common);
      dx[c] = static_cast<float>(add ? dx[c] + gradient : gradient);
    }
  }

  const RowNormShape shape_;
  const DataType type_;
  const std::int64_t channels_;
  Floats x_, y_, dy_, dx_;
  AlignedArray<double> centers_, factors_;  // of each row of the last forward
  AlignedArray<double> scale_sums_, shift_sums_;
};

}  // namespace

std::unique_ptr<RowNormOp> reference_row_norm(const RowNormShape& shape, const PlanOptions& plan) {
  return std::make_unique<ReferenceRowNorm>(shape, plan);
}

}  // namespace fettle::kernels
