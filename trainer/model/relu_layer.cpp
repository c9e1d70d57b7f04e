// ReLU, if it cannot be fused into the layer before it.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class ReluLayer final : public Layer {
 public:
  ReluLayer(std::int64_t elements, std::unique_ptr<kernels::ReluOp> op)
      : elements_(elements), op_(std::move(op)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    op_->forward(pass.samples * elements_, at.x, at.y);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    if (at.dx != nullptr) op_->backward(pass.samples * elements_, at.y, at.dy, at.dx);
  }

 private:
  const std::int64_t elements_;  // of a sample
  std::unique_ptr<kernels::ReluOp> op_;
};

Status plan_relu(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan&) {
  return success();
}

Result<std::unique_ptr<Layer>> make_relu(const LayerPlan& plan, const LayerContext& context) {
  return std::unique_ptr<Layer>(
      std::make_unique<ReluLayer>(plan.input.size(), context.backend.relu(context.options.type)));
}

}  // namespace

const LayerKind kReluKind{api::LayerType::kRelu, plan_relu, make_relu, /*reads=*/{.output = true}};

}  // namespace fettle::trainer
