// LayerNorm and RmsNorm: normalise each pixel by itself, over its channels (a plain list over all
// its numbers), so neither the batch nor other pixels matter. As torch.nn.LayerNorm and RMSNorm of
// that width, with epsilon 1e-5 for both.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class RowNormLayer final : public Layer {
 public:
  RowNormLayer(const LayerPlan& plan, Parameters& parameters,
               std::unique_ptr<kernels::RowNormOp> op)
      : plan_(plan), parameters_(parameters), op_(std::move(op)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    const float* scale = parameters_.values(plan_.weights);
    const float* shift = shifts() ? parameters_.values(plan_.biases) : nullptr;
    if (at.sum == nullptr) return op_->forward(pass.samples, at.x, scale, shift, at.y);
    op_->forward_sum(pass.samples, at.x, at.shortcut, at.sum, scale, shift, at.y);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    op_->backward(pass.samples, at.x, at.dy, parameters_.values(plan_.weights), at.dx, at.adds,
                  parameters_.gradient(plan_.weights),
                  shifts() ? parameters_.gradient(plan_.biases) : nullptr);
  }

 private:
  bool shifts() const { return plan_.biases.count > 0; }

  const LayerPlan plan_;
  Parameters& parameters_;
  std::unique_ptr<kernels::RowNormOp> op_;
};

Status plan_rms_norm(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan& layer) {
  layer.weights = {.count = layer.input.channels, .fill = 1};
  return success();
}

Status plan_layer_norm(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan& layer) {
  layer.weights = {.count = layer.input.channels, .fill = 1};
  layer.biases = {.count = layer.input.channels, .fill = 0};
  return success();
}

Result<std::unique_ptr<Layer>> make_row_norm(const LayerPlan& plan, const LayerContext& context) {
  kernels::RowNormShape shape;
  shape.kind = plan.type == api::LayerType::kLayerNorm ? kernels::RowNormKind::kLayer
                                                       : kernels::RowNormKind::kRms;
  shape.input = plan.input;
  FETTLE_ASSIGN(auto op, context.backend.row_norm(shape, context.options));
  return std::unique_ptr<Layer>(
      std::make_unique<RowNormLayer>(plan, context.parameters, std::move(op)));
}

}  // namespace

const LayerKind kLayerNormKind{.type = api::LayerType::kLayerNorm,
                               .plan = plan_layer_norm,
                               .make = make_row_norm,
                               .reads = {.input = true},
                               .adds_gradients = true};
const LayerKind kRmsNormKind{.type = api::LayerType::kRmsNorm,
                             .plan = plan_rms_norm,
                             .make = make_row_norm,
                             .reads = {.input = true},
                             .adds_gradients = true};

}  // namespace fettle::trainer
