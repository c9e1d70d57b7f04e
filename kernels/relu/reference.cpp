// loops.h for any processor; formulas.h defines ReLU.
#include "kernels/reference_operations.h"
#include "kernels/relu/loops.h"

namespace fettle::kernels {
namespace {

template <class Element>
class ReferenceRelu : public ReluOp {
 public:
  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    relu_all(count, static_cast<const Element*>(x), static_cast<Element*>(y));
  }
  void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) override {
    relu_gradient_all(count, static_cast<const Element*>(y), static_cast<const Element*>(dy),
                      static_cast<Element*>(dx));
  }
};

}  // namespace

std::unique_ptr<ReluOp> reference_relu(DataType type) {
  if (type == DataType::kFloat32) return std::make_unique<ReferenceRelu<float>>();
  if (type == DataType::kFloat16) return std::make_unique<ReferenceRelu<Float16>>();
  return std::make_unique<ReferenceRelu<std::uint16_t>>();
}

}  // namespace fettle::kernels
