#include "kernels/gelu/reference.h"

#include <cmath>
#include <numbers>

#include "kernels/reference/floats.h"

namespace fettle::kernels {
namespace {

// y = x share(x), and the slope of that.
struct Point {
  double share = 0;
  double slope = 0;
};

Point exact_at(double x) {
  const double share = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {share, share + x * density};
}

Point tanh_at(double x) {
  constexpr double kCubic = 0.044715;
  constexpr double kFactor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  const double tanh = std::tanh(kFactor * (x + kCubic * x * x * x));
  const double inner_slope = kFactor * (1 + 3 * kCubic * x * x);
  const double share = 0.5 * (1 + tanh);
  return {share, share + 0.5 * x * (1 - tanh * tanh) * inner_slope};
}

class ReferenceGelu : public GeluOp {
 public:
  ReferenceGelu(GeluForm form, std::int64_t max_count, DataType type)
      : form_(form), x_(type, max_count), dy_(type, max_count), result_(type, max_count) {}

  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    const float* input = x_.read(x, count);
    float* output = result_.target(y);
    for (std::int64_t i = 0; i < count; ++i) {
      output[i] = static_cast<float>(input[i] * at(input[i]).share);
    }
    result_.write(y, count);
  }

  void backward(std::int64_t count, ConstBuffer x, ConstBuffer dy, Buffer dx) override {
    const float* input = x_.read(x, count);
    const float* gradient = dy_.read(dy, count);
    float* input_gradient = result_.target(dx);
    for (std::int64_t i = 0; i < count; ++i) {
      input_gradient[i] = static_cast<float>(gradient[i] * at(input[i]).slope);
    }
    result_.write(dx, count);
  }

 private:
  Point at(double x) const { return form_ == GeluForm::kExact ? exact_at(x) : tanh_at(x); }

  const GeluForm form_;
  Floats x_, dy_, result_;
};

}  // namespace

std::unique_ptr<GeluOp> reference_gelu(GeluForm form, std::int64_t max_count, DataType type) {
  return std::make_unique<ReferenceGelu>(form, max_count, type);
}

}  // namespace fettle::kernels
