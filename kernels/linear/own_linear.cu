#include "base/check.h"
#include "kernels/cuda/operations.h"
#include "kernels/gelu/formulas.h"
#include "kernels/linear/bias_gradient.h"
#include "kernels/linear/matrix_product.cuh"

namespace fettle::kernels {
namespace {

using cuda::AcrossDepth;
using cuda::AlongDepth;
using cuda::ProductSize;

class OwnLinear : public LinearOp {
 public:
  OwnLinear(cuda::Device& device, const LinearShape& shape, DataType type)
      : device_(device),
        shape_(shape),
        type_(type),
        bias_gradient_(device, type, shape.outputs, shape.bias, shape.relu) {}

  // Reserves the workspace for calls of up to `max_samples`.
  Status reserve(std::int64_t max_samples) {
    FETTLE_TRY(bias_gradient_.reserve(max_samples));
    const std::int64_t bytes = cuda::sum_bytes(device_, shape_.outputs, shape_.inputs, max_samples);
    FETTLE_TRY(device_.reserve_branch_scratch(bytes));
    return device_.reserve_scratch(bytes);
  }

  void set_weights(const LayerWeights& from) override {
    weights_ = from.weights;
    bias_ = shape_.bias ? from.bias : nullptr;
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    cuda::with_type(type_, [&](auto zero) {
      using T = decltype(zero);
      multiply_weights<T>(samples, x, write_result(static_cast<T*>(y)));
    });
  }

  void forward_gelu(std::int64_t samples, ConstBuffer x, Buffer y, Buffer activated) override {
    CHECK(shape_.gelu_after.has_value(), "a GELU comes after this layer");
    with_gelu_form(*shape_.gelu_after, [&](auto form) {
      cuda::with_type(type_, [&](auto zero) {
        using T = decltype(zero);
        multiply_weights<T>(samples, x,
                            cuda::WriteActivated<form(), T>{write_result(static_cast<T*>(y)),
                                                            static_cast<T*>(activated)});
      });
    });
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    // First, because both products read the masked dy.
    bias_gradient_.mask_and_sum(samples, y, dy, bias_gradient);
    if (dx == nullptr) return add_weight_gradient(samples, x, dy, weight_gradient);
    device_.run_beside([&] { add_weight_gradient(samples, x, dy, weight_gradient); },
                       [&] {
                         cuda::with_type(type_, [&](auto zero) {
                           using T = decltype(zero);
                           multiply_gradient<T>(
                               samples, dy,
                               cuda::WriteResult<T>{static_cast<T*>(dx), /*bias=*/nullptr,
                                                    /*relu=*/false, shape_.inputs});
                         });
                       });
  }

  void backward_gelu(std::int64_t samples, ConstBuffer before, ConstBuffer x, ConstBuffer y,
                     Buffer dy, Buffer dx, float* weight_gradient, float* bias_gradient) override {
    CHECK(shape_.gelu_before.has_value(), "a GELU comes before this layer");
    // First, because both products read the masked dy.
    bias_gradient_.mask_and_sum(samples, y, dy, bias_gradient);
    if (dx == nullptr) return add_weight_gradient(samples, x, dy, weight_gradient);
    device_.run_beside([&] { add_weight_gradient(samples, x, dy, weight_gradient); },
                       [&] { multiply_by_slope(samples, before, dy, dx); });
  }

 private:
  template <class T>
  cuda::WriteResult<T> write_result(T* y) const {
    return {y, bias_, shape_.relu, shape_.outputs};
  }

  // x W'
  template <class T, class Store>
  void multiply_weights(std::int64_t samples, ConstBuffer x, const Store& store) {
    const ProductSize size{narrow(samples), narrow(shape_.outputs), narrow(shape_.inputs)};
    cuda::multiply(device_, size, rows<AlongDepth<T>>(x, shape_.inputs),
                   rows<AlongDepth<T>>(weights_, shape_.inputs), store);
  }

  // dy W
  template <class T, class Store>
  void multiply_gradient(std::int64_t samples, ConstBuffer dy, const Store& store) {
    const ProductSize size{narrow(samples), narrow(shape_.inputs), narrow(shape_.outputs)};
    cuda::multiply(device_, size, rows<AlongDepth<T>>(dy, shape_.outputs),
                   rows<AcrossDepth<T>>(weights_, shape_.inputs), store);
  }

  // dy W, multiplied by GELU's slope.
  void multiply_by_slope(std::int64_t samples, ConstBuffer before, ConstBuffer dy, Buffer dx) {
    with_gelu_form(*shape_.gelu_before, [&](auto form) {
      cuda::with_type(type_, [&](auto zero) {
        using T = decltype(zero);
        multiply_gradient<T>(
            samples, dy,
            cuda::WriteBySlope<form(), T>{static_cast<T*>(dx), static_cast<const T*>(before),
                                          shape_.inputs});
      });
    });
  }

  // `dy` has been masked by a fused ReLU.
  void add_weight_gradient(std::int64_t samples, ConstBuffer x, ConstBuffer dy,
                           float* weight_gradient) {
    if (weight_gradient == nullptr) return;  // frozen
    cuda::with_type(type_, [&](auto zero) {
      using T = decltype(zero);
      const ProductSize size{narrow(shape_.outputs), narrow(shape_.inputs), narrow(samples)};
      cuda::add_product(device_, size, rows<AcrossDepth<T>>(dy, shape_.outputs),
                        rows<AcrossDepth<T>>(x, shape_.inputs), weight_gradient);
    });
  }

  // Sizes fit 32 bits: own_linear() has checked them for the maximum number of samples.
  static int narrow(std::int64_t count) { return static_cast<int>(count); }

  // Makes an operand of a matrix in memory whose rows are `stride` apart.
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

Result<std::unique_ptr<LinearOp>> own_linear(cuda::Device& device, const LinearShape& shape,
                                             const PlanOptions& plan) {
  FETTLE_TRY(cuda::check_product(plan.max_samples, shape.outputs, shape.inputs));
  auto op = std::make_unique<OwnLinear>(device, shape, plan.type);
  FETTLE_TRY(op->reserve(plan.max_samples));
  return std::unique_ptr<LinearOp>(std::move(op));
}

}  // namespace fettle::kernels
