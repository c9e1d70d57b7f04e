// GELU, exact or in its tanh form, as torch.nn.GELU.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class GeluLayer final : public Layer {
 public:
  GeluLayer(std::int64_t elements, std::unique_ptr<kernels::GeluOp> op)
      : elements_(elements), op_(std::move(op)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    op_->forward(pass.samples * elements_, at.x, at.y);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    if (at.dx != nullptr) op_->backward(pass.samples * elements_, at.x, at.dy, at.dx);
  }

 private:
  const std::int64_t elements_;  // of a sample
  std::unique_ptr<kernels::GeluOp> op_;
};

Status plan_gelu(const api::ModelConfig&, const api::LayerConfig& config, bool, LayerPlan& layer) {
  layer.gelu = config.approximate == api::GeluApproximation::kTanh ? kernels::GeluForm::kTanh
                                                                   : kernels::GeluForm::kExact;
  return success();
}

Result<std::unique_ptr<Layer>> make_gelu(const LayerPlan& plan, const LayerContext& context) {
  const std::int64_t elements = plan.input.size();
  return std::unique_ptr<Layer>(std::make_unique<GeluLayer>(
      elements, context.backend.gelu(plan.gelu, context.options.max_samples * elements,
                                     context.options.type)));
}

}  // namespace

const LayerKind kGeluKind{api::LayerType::kGelu, plan_gelu, make_gelu, /*reads=*/{.input = true}};

}  // namespace fettle::trainer
