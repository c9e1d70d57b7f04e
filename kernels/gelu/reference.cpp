// GELU (Hendrycks, Gimpel 2016), CPU reference; the two forms of torch.nn.GELU.
//
//   exact   y = x P(x), P(x) = (1 + erf(x / sqrt 2)) / 2        dx = dy (P(x) + x p(x)), p = P'
//   tanh    y = x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)
//           dx = dy ((1 + tanh u) / 2 + x (1 - tanh^2 u) u' / 2)
//
// The exact form is the default, as in PyTorch; GPT-2 was trained with the tanh form. Computed in
// double, element by element. NaN passes in both directions.
#include "kernels/gelu/formulas.h"
#include "kernels/reference/floats.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

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
  GeluPoint<double> at(double x) const {
    return form_ == GeluForm::kExact ? exact_gelu_at(x) : tanh_gelu_at(x);
  }

  const GeluForm form_;
  Floats x_, dy_, result_;
};

}  // namespace

std::unique_ptr<GeluOp> reference_gelu(GeluForm form, std::int64_t max_count, DataType type) {
  return std::make_unique<ReferenceGelu>(form, max_count, type);
}

}  // namespace fettle::kernels
