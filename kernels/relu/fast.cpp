// loops.h compiled for each processor.
#include "kernels/fast_operations.h"
#include "kernels/relu/loops.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

template <class Element>
FETTLE_FOR_EACH_PROCESSOR void forward_all(std::int64_t count, const Element* x, Element* y) {
  relu_all(count, x, y);
}

template <class Element>
FETTLE_FOR_EACH_PROCESSOR void backward_all(std::int64_t count, const Element* y, const Element* dy,
                                            Element* dx) {
  relu_gradient_all(count, y, dy, dx);
}

template <class Element>
class FastRelu : public ReluOp {
 public:
  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    forward_all(count, static_cast<const Element*>(x), static_cast<Element*>(y));
  }
  void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) override {
    backward_all(count, static_cast<const Element*>(y), static_cast<const Element*>(dy),
                 static_cast<Element*>(dx));
  }
};

}  // namespace

void fast_relu_backward(DataType type, std::int64_t count, ConstBuffer y, ConstBuffer dy,
                        Buffer dx) {
  if (type == DataType::kFloat32) return FastRelu<float>().backward(count, y, dy, dx);
  FastRelu<std::uint16_t>().backward(count, y, dy, dx);
}

std::unique_ptr<ReluOp> fast_relu(DataType type) {
  if (type == DataType::kFloat32) return std::make_unique<FastRelu<float>>();
  return std::make_unique<FastRelu<std::uint16_t>>();
}

}  // namespace fettle::kernels
