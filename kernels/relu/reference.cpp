#include "kernels/relu/reference.h"

#include "kernels/bfloat16.h"

namespace fettle::kernels {
namespace {

class FloatRelu : public ReluOp {
 public:
  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    relu_forward(count, static_cast<const float*>(x), static_cast<float*>(y));
  }
  void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) override {
    relu_backward(count, static_cast<const float*>(y), static_cast<const float*>(dy),
                  static_cast<float*>(dx));
  }
};

// No arithmetic happens, so nothing needs rounding: the bits are passed on or cleared.
class BFloat16Relu : public ReluOp {
 public:
  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    const auto* from = static_cast<const std::uint16_t*>(x);
    auto* to = static_cast<std::uint16_t*>(y);
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_bfloat16(from[i]) < 0 ? 0 : from[i];
  }
  void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) override {
    const auto* output = static_cast<const std::uint16_t*>(y);
    const auto* from = static_cast<const std::uint16_t*>(dy);
    auto* to = static_cast<std::uint16_t*>(dx);
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_bfloat16(output[i]) <= 0 ? 0 : from[i];
  }
};

}  // namespace

std::unique_ptr<ReluOp> reference_relu(DataType type) {
  if (type == DataType::kFloat32) return std::make_unique<FloatRelu>();
  return std::make_unique<BFloat16Relu>();
}

}  // namespace fettle::kernels
