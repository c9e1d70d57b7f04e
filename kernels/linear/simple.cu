#include "kernels/linear/bias_gradient.h"
#include "kernels/linear/cuda.h"
#include "kernels/linear/matrix_product.cuh"

namespace fettle::kernels {
namespace {

using cuda::AcrossDepth;
using cuda::AlongDepth;
using cuda::ProductSize;

class SimpleLinear : public WeightedOp {
 public:
  SimpleLinear(cuda::Device& device, const LinearShape& shape, DataType type)
      : device_(device),
        shape_(shape),
        type_(type),
        bias_gradient_(device, type, shape.outputs, shape.bias, shape.relu) {}

  // What calls of up to so many samples need of the workspace.
  Status reserve(std::int64_t max_samples) {
    FETTLE_TRY(bias_gradient_.reserve(max_samples));
    return device_.reserve_scratch(
        cuda::sum_bytes(device_, shape_.outputs, shape_.inputs, max_samples));
  }

  void set_weights(ConstBuffer weights, const float* bias) override {
    weights_ = weights;
    bias_ = shape_.bias ? bias : nullptr;
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    cuda::with_type(type_, [&](auto zero) {
      using T = decltype(zero);
      const ProductSize size{narrow(samples), narrow(shape_.outputs), narrow(shape_.inputs)};
      cuda::multiply(device_, size, rows<AlongDepth<T>>(x, shape_.inputs),
                     rows<AlongDepth<T>>(weights_, shape_.inputs),
                     cuda::WriteResult<T>{static_cast<T*>(y), bias_, shape_.relu, shape_.outputs});
    });
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    bias_gradient_.run(samples, y, dy, bias_gradient);
    cuda::with_type(type_, [&](auto zero) {
      using T = decltype(zero);
      const ProductSize of_weights{narrow(shape_.outputs), narrow(shape_.inputs), narrow(samples)};
      cuda::add_product(device_, of_weights, rows<AcrossDepth<T>>(dy, shape_.outputs),
                        rows<AcrossDepth<T>>(x, shape_.inputs), weight_gradient);
      if (dx == nullptr) return;
      const ProductSize of_input{narrow(samples), narrow(shape_.inputs), narrow(shape_.outputs)};
      cuda::multiply(device_, of_input, rows<AlongDepth<T>>(dy, shape_.outputs),
                     rows<AcrossDepth<T>>(weights_, shape_.inputs),
                     cuda::WriteResult<T>{static_cast<T*>(dx), nullptr, false, shape_.inputs});
    });
  }

 private:
  static int narrow(std::int64_t count) { return static_cast<int>(count); }

  // A matrix in memory whose rows are `stride` apart, as an operand.
  template <class Operand>
  static Operand rows(ConstBuffer data, std::int64_t stride) {
    return {static_cast<decltype(Operand::data)>(data), stride};
  }

  cuda::Device& device_;
  const LinearShape shape_;
  const DataType type_;
  cuda::BiasGradient bias_gradient_;
  ConstBuffer weights_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<WeightedOp>> simple_linear(cuda::Device& device, const LinearShape& shape,
                                                  const PlanOptions& plan) {
  FETTLE_TRY(cuda::check_product(plan.max_samples, shape.outputs, shape.inputs));
  auto op = std::make_unique<SimpleLinear>(device, shape, plan.type);
  FETTLE_TRY(op->reserve(plan.max_samples));
  return std::unique_ptr<WeightedOp>(std::move(op));
}

}  // namespace fettle::kernels
