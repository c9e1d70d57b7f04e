#include "kernels/linear/unfused_gelu.h"

#include <utility>

#include "base/check.h"

namespace fettle::kernels {
namespace {

class UnfusedGelu : public LinearOp {
 public:
  UnfusedGelu(Backend& backend, const LinearShape& shape, const PlanOptions& plan,
              std::unique_ptr<WeightedOp> linear)
      : shape_(shape), linear_(std::move(linear)) {
    if (shape.gelu_after) {
      after_ = backend.gelu(*shape.gelu_after, plan.max_samples * shape.outputs, plan.type);
    }
    if (shape.gelu_before) {
      before_ = backend.gelu(*shape.gelu_before, plan.max_samples * shape.inputs, plan.type);
    }
  }

  void set_weights(const LayerWeights& from) override { linear_->set_weights(from); }

  void forward(std::int64_t samples, ConstBuffer x, Buffer y) override {
    linear_->forward(samples, x, y);
  }

  void forward_gelu(std::int64_t samples, ConstBuffer x, Buffer y, Buffer activated) override {
    CHECK(after_ != nullptr, "a GELU comes after this layer");
    linear_->forward(samples, x, y);
    after_->forward(samples * shape_.outputs, y, activated);
  }

  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                float* weight_gradient, float* bias_gradient) override {
    linear_->backward(samples, x, y, dy, dx, weight_gradient, bias_gradient);
  }

  void backward_gelu(std::int64_t samples, ConstBuffer before, ConstBuffer x, ConstBuffer y,
                     Buffer dy, Buffer dx, float* weight_gradient, float* bias_gradient) override {
    CHECK(before_ != nullptr, "a GELU comes before this layer");
    linear_->backward(samples, x, y, dy, dx, weight_gradient, bias_gradient);
    // In place: dx is first with respect to GELU(before).
    if (dx != nullptr) before_->backward(samples * shape_.inputs, before, dx, dx);
  }

 private:
  const LinearShape shape_;
  std::unique_ptr<WeightedOp> linear_;
  std::unique_ptr<GeluOp> after_, before_;  // nullptr without that GELU
};

}  // namespace

std::unique_ptr<LinearOp> unfused_gelu(Backend& backend, const LinearShape& shape,
                                       const PlanOptions& plan,
                                       std::unique_ptr<WeightedOp> linear) {
  return std::make_unique<UnfusedGelu>(backend, shape, plan, std::move(linear));
}

}  // namespace fettle::kernels
