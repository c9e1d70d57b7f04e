#include "kernels/relu/fast.h"

#include "kernels/relu/loops.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

FETTLE_FOR_EACH_PROCESSOR void forward_floats(std::int64_t count, const float* x, float* y) {
  relu_all(count, x, y);
}
FETTLE_FOR_EACH_PROCESSOR void forward_bfloats(std::int64_t count, const std::uint16_t* x,
                                               std::uint16_t* y) {
  relu_all(count, x, y);
}
FETTLE_FOR_EACH_PROCESSOR void backward_floats(std::int64_t count, const float* y, const float* dy,
                                               float* dx) {
  relu_gradient_all(count, y, dy, dx);
}
FETTLE_FOR_EACH_PROCESSOR void backward_bfloats(std::int64_t count, const std::uint16_t* y,
                                                const std::uint16_t* dy, std::uint16_t* dx) {
  relu_gradient_all(count, y, dy, dx);
}

class FastRelu : public ReluOp {
 public:
  explicit FastRelu(DataType type) : type_(type) {}
  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    fast_relu_forward(type_, count, x, y);
  }
  void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) override {
    fast_relu_backward(type_, count, y, dy, dx);
  }

 private:
  const DataType type_;
};

}  // namespace

void fast_relu_forward(DataType type, std::int64_t count, ConstBuffer x, Buffer y) {
  if (type == DataType::kFloat32) {
    forward_floats(count, static_cast<const float*>(x), static_cast<float*>(y));
  } else {
    forward_bfloats(count, static_cast<const std::uint16_t*>(x), static_cast<std::uint16_t*>(y));
  }
}

void fast_relu_backward(DataType type, std::int64_t count, ConstBuffer y, ConstBuffer dy,
                        Buffer dx) {
  if (type == DataType::kFloat32) {
    backward_floats(count, static_cast<const float*>(y), static_cast<const float*>(dy),
                    static_cast<float*>(dx));
  } else {
    backward_bfloats(count, static_cast<const std::uint16_t*>(y),
                     static_cast<const std::uint16_t*>(dy), static_cast<std::uint16_t*>(dx));
  }
}

std::unique_ptr<ReluOp> fast_relu(DataType type) { return std::make_unique<FastRelu>(type); }

}  // namespace fettle::kernels
