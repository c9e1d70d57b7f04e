// Max and average pooling without padding, CPU reference.
//
//   max       y = largest input of the window; the gradient goes to the first such input.
//             NaN counts as largest, and the last of several gets the gradient, as in PyTorch.
//   average   y = mean of the window; the gradient is spread evenly
//
// Windows may overlap (stride smaller than the kernel): gradients are summed, in order of the
// windows.
#include <algorithm>
#include <cmath>

#include "kernels/reference/floats.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

class ReferencePool : public PoolOp {
 public:
  ReferencePool(const PoolShape& shape, const PlanOptions& plan)
      : shape_(shape),
        out_(shape.output()),
        x_(plan.type, plan.max_samples * shape.input.size()),
        y_(plan.type, plan.max_samples * out_.size()),
        dy_(plan.type, plan.max_samples * out_.size()),
        dx_(plan.type, plan.max_samples * shape.input.size()),
        largest_(shape.kind == PoolKind::kMax ? plan.max_samples * out_.size() : 0) {}

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    const float* input = x_.read(x, samples * shape_.input.size());
    float* output = y_.target(y);
    for_each_window(samples, [&](std::int64_t first, std::int64_t result) {
      if (shape_.kind == PoolKind::kMax) {
        take_largest(input, first, output, result);
      } else {
        take_average(input, first, output, result);
      }
    });
    y_.write(y, samples * out_.size());
  }

  void backward(std::int64_t samples, ConstBuffer, ConstBuffer, ConstBuffer dy,
                Buffer dx) override {
    const float* gradient = dy_.read(dy, samples * out_.size());
    float* input_gradient = dx_.target(dx);
    std::fill_n(input_gradient, samples * shape_.input.size(), 0.0F);
    for_each_window(samples, [&](std::int64_t first, std::int64_t result) {
      for (std::int64_t c = 0; c < out_.channels; ++c) {
        const float share = gradient[result + c] / static_cast<float>(window());
        if (shape_.kind == PoolKind::kMax) {
          input_gradient[first + offset(largest_[result + c]) + c] += gradient[result + c];
        } else {
          for (std::int64_t k = 0; k < window(); ++k)
            input_gradient[first + offset(k) + c] += share;
        }
      }
    });
    dx_.write(dx, samples * shape_.input.size());
  }

 private:
  // Pixels of a window.
  std::int64_t window() const { return shape_.kernel_height * shape_.kernel_width; }

  // The distance from the first pixel of a window to its k-th, in elements.
  std::int64_t offset(std::int64_t k) const {
    const std::int64_t row = k / shape_.kernel_width;
    const std::int64_t column = k % shape_.kernel_width;
    return (row * shape_.input.width + column) * shape_.input.channels;
  }

  // Calls visit(offset of the window's first pixel in x, offset of its result in y), for channel 0.
  template <class Visit>
  void for_each_window(std::int64_t samples, Visit visit) const {
    std::int64_t result = 0;
    for (std::int64_t s = 0; s < samples; ++s) {
      const std::int64_t image = s * shape_.input.size();
      for (std::int64_t p = 0; p < out_.height; ++p) {
        for (std::int64_t q = 0; q < out_.width; ++q, result += out_.channels) {
          const std::int64_t pixel = (p * shape_.input.width + q) * shape_.stride;
          visit(image + pixel * shape_.input.channels, result);
        }
      }
    }
  }

  void take_largest(const float* x, std::int64_t first, float* y, std::int64_t result) {
    for (std::int64_t c = 0; c < out_.channels; ++c) {
      y[result + c] = x[first + c];
      largest_[result + c] = 0;
    }
    for (std::int64_t k = 1; k < window(); ++k) {
      const float* candidates = x + first + offset(k);
      for (std::int64_t c = 0; c < out_.channels; ++c) {
        const float candidate = candidates[c];
        if (!(candidate > y[result + c]) && !std::isnan(candidate)) continue;
        y[result + c] = candidate;
        largest_[result + c] = static_cast<std::uint16_t>(k);
      }
    }
  }

  void take_average(const float* x, std::int64_t first, float* y, std::int64_t result) const {
    std::fill_n(y + result, out_.channels, 0.0F);
    for (std::int64_t k = 0; k < window(); ++k) {
      for (std::int64_t c = 0; c < out_.channels; ++c) y[result + c] += x[first + offset(k) + c];
    }
    for (std::int64_t c = 0; c < out_.channels; ++c) y[result + c] /= static_cast<float>(window());
  }

  const PoolShape shape_;
  const ImageShape out_;
  Floats x_, y_, dy_, dx_;
  AlignedArray<std::uint16_t> largest_;  // place in the window for each output of the last forward
};

}  // namespace

std::unique_ptr<PoolOp> reference_pool(const PoolShape& shape, const PlanOptions& plan) {
  return std::make_unique<ReferencePool>(shape, plan);
}

}  // namespace fettle::kernels
