// Linear layer, CPU reference.
//
//   forward    y[s, o] = b[o] + sum_i x[s, i] W[o, i],  then max(0, y) where ReLU is fused
//   backward   g = dy, or dy masked by y > 0 where ReLU is fused
//              dx[s, i] = sum_o g[s, o] W[o, i]
//              dW[o, i] += sum_s g[s, o] x[s, i]        db[o] += sum_s g[s, o]
//
// Three matrix products (reference/product.h), each summed in a fixed order.
#include <algorithm>

#include "kernels/reference/floats.h"
#include "kernels/reference/fused.h"
#include "kernels/reference/product.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {
namespace {

class ReferenceLinear : public WeightedOp {
 public:
  ReferenceLinear(const LinearShape& shape, const PlanOptions& plan)
      : shape_(shape),
        x_(plan.type, plan.max_samples * shape.inputs),
        y_(plan.type, plan.max_samples * shape.outputs),
        dy_(plan.type, plan.max_samples * shape.outputs),
        dx_(plan.type, plan.max_samples * shape.inputs),
        given_(plan.type, shape.inputs * shape.outputs),
        weights_(shape.inputs * shape.outputs),
        transposed_(shape.inputs * shape.outputs),
        bias_(shape.outputs) {}

  void set_weights(const LayerWeights& from) override {
    const float* weights = given_.read(from.weights, weights_.size());
    std::copy_n(weights, weights_.size(), weights_.data());
    for (std::int64_t o = 0; o < shape_.outputs; ++o) {
      for (std::int64_t i = 0; i < shape_.inputs; ++i) {
        transposed_[i * shape_.outputs + o] = weights_[o * shape_.inputs + i];
      }
    }
    if (shape_.bias) std::copy_n(from.bias, shape_.outputs, bias_.data());
  }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    const float* input = x_.read(x, samples * shape_.inputs);
    float* output = y_.target(y);
    fill_rows(samples, shape_.outputs, shape_.bias ? bias_.data() : nullptr, output);
    add_product(samples, shape_.outputs, shape_.inputs, {input, shape_.inputs, 1},
                transposed_.data(), output);
    if (shape_.relu) relu_all(samples * shape_.outputs, output, output);
    y_.write(y, samples * shape_.outputs);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    const float* gradient = masked_gradient(shape_.relu, samples * shape_.outputs, y_, y, dy_, dy);
    const float* input = x_.read(x, samples * shape_.inputs);
    if (weight_gradient != nullptr) {
      // The transposed gradient: the row stride is 1.
      add_product(shape_.outputs, shape_.inputs, samples, {gradient, 1, shape_.outputs}, input,
                  weight_gradient);
    }
    if (shape_.bias) add_rows(samples, shape_.outputs, gradient, bias_gradient);
    if (dx == nullptr) return;
    float* input_gradient = dx_.target(dx);
    std::fill_n(input_gradient, samples * shape_.inputs, 0.0F);
    add_product(samples, shape_.inputs, shape_.outputs, {gradient, shape_.outputs, 1},
                weights_.data(), input_gradient);
    dx_.write(dx, samples * shape_.inputs);
  }

 private:
  const LinearShape shape_;
  Floats x_, y_, dy_, dx_, given_;
  AlignedArray<float> weights_;     // [outputs, inputs]
  AlignedArray<float> transposed_;  // [inputs, outputs], so that forward runs along outputs
  AlignedArray<float> bias_;
};

}  // namespace

std::unique_ptr<WeightedOp> reference_linear(const LinearShape& shape, const PlanOptions& plan) {
  return std::make_unique<ReferenceLinear>(shape, plan);
}

}  // namespace fettle::kernels
