// WeightedLayer: the common part of linear, conv and head layers: a WeightedOp with its weights (a
// head: the embedding's) and, optionally, biases. One thread.
#pragma once

#include <cmath>
#include <memory>
#include <utility>

#include "trainer/model/layer.h"

namespace fettle::trainer {

// `Op`: kernels::WeightedOp or a class derived from it.
template <class Op>
class WeightedLayer : public Layer {
 public:
  WeightedLayer(const LayerPlan& plan, Parameters& parameters, std::unique_ptr<Op> op,
                std::int64_t rows = 1)
      : plan_(plan), parameters_(parameters), op_(std::move(op)), rows_(rows) {}

  void weights_changed() override {
    kernels::LayerWeights from{parameters_.operand(plan_)};
    if (plan_.bias) {
      from.bias = parameters_.values(plan_.biases);
      from.typed_bias = parameters_.typed(plan_.biases);
    }
    op_->set_weights(from);
  }

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    op_->forward(rows(pass), at.x, at.y);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    op_->backward(rows(pass), at.x, at.y, at.dy, at.dx, weight_gradient(), bias_gradient());
  }

 protected:
  Op& op() { return *op_; }
  std::int64_t rows(const Pass& pass) const { return rows_ * pass.samples; }
  // nullptr: the weights are frozen. Among layers that step back, only a tied head can be frozen.
  float* weight_gradient() { return plan_.frozen ? nullptr : parameters_.gradient(weights()); }
  float* bias_gradient() { return plan_.bias ? parameters_.gradient(plan_.biases) : nullptr; }

 private:
  const Block& weights() const { return plan_.shared.count > 0 ? plan_.shared : plan_.weights; }

  const LayerPlan plan_;
  Parameters& parameters_;
  std::unique_ptr<Op> op_;
  const std::int64_t rows_;  // of a sample: one, or one for each token
};

// Rows of a sample in a linear layer, and options for that many rows.
inline std::int64_t rows_of(const LayerPlan& plan) { return plan.tokens ? plan.input.height : 1; }
inline kernels::PlanOptions by_rows(kernels::PlanOptions options, const LayerPlan& plan) {
  options.max_samples *= rows_of(plan);
  return options;
}

// Blocks for `outputs` sums of `fan_in` products each, with torch.nn's initial values.
inline void plan_weights(std::int64_t outputs, std::int64_t fan_in, bool bias, LayerPlan& layer) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  layer.weights = {.count = outputs * fan_in, .bound = bound};
  layer.bias = bias;
  if (bias) layer.biases = {.count = outputs, .bound = bound};
}

}  // namespace fettle::trainer
