// WeightedLayer: what linear and conv layers have in common: a WeightedOp with its weights and,
// perhaps, biases. One thread.
#pragma once

#include <cmath>
#include <memory>
#include <utility>

#include "trainer/model/layer.h"

namespace fettle::trainer {

class WeightedLayer final : public Layer {
 public:
  WeightedLayer(const LayerPlan& plan, Parameters& parameters,
                std::unique_ptr<kernels::WeightedOp> op)
      : plan_(plan), parameters_(parameters), op_(std::move(op)) {}

  void weights_changed() override {
    op_->set_weights(parameters_.typed(plan_.weights),
                     plan_.bias ? parameters_.values(plan_.biases) : nullptr);
  }

  void forward(const Pass& pass, kernels::ConstBuffer x, kernels::Buffer y) override {
    op_->forward(pass.samples(), x, y);
  }

  void backward(const Pass& pass, kernels::ConstBuffer x, kernels::ConstBuffer y,
                kernels::Buffer dy, kernels::Buffer dx) override {
    op_->backward(pass.samples(), x, y, dy, dx, parameters_.gradient(plan_.weights),
                  plan_.bias ? parameters_.gradient(plan_.biases) : nullptr);
  }

 private:
  const LayerPlan plan_;
  Parameters& parameters_;
  std::unique_ptr<kernels::WeightedOp> op_;
};

// Blocks for `outputs` sums of `fan_in` products each, as torch.nn starts them.
inline void plan_weights(std::int64_t outputs, std::int64_t fan_in, bool bias, LayerPlan& layer) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  layer.weights = {.count = outputs * fan_in, .bound = bound};
  layer.bias = bias;
  if (bias) layer.biases = {.count = outputs, .bound = bound};
}

}  // namespace fettle::trainer
