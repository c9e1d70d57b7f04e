// LayerNorm and RmsNorm: every pixel by itself, over its channels (of a plain list: over all of
// it), so neither the batch nor other pixels matter. As torch.nn.LayerNorm and RMSNorm of that
// width, with epsilon 1e-5 for both.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class RowNormLayer final : public Layer {
 public:
  RowNormLayer(const LayerPlan& plan, Parameters& parameters,
               std::unique_ptr<kernels::RowNormOp> op)
      : plan_(plan), parameters_(parameters), op_(std::move(op)) {}

  void forward(const Pass& pass, kernels::ConstBuffer x, kernels::Buffer y) override {
    op_->forward(pass.samples, x, parameters_.values(plan_.weights),
                 shifts() ? parameters_.values(plan_.biases) : nullptr, y);
  }

  void backward(const Pass& pass, kernels::ConstBuffer x, kernels::ConstBuffer, kernels::Buffer dy,
                kernels::Buffer dx) override {
    op_->backward(pass.samples, x, dy, parameters_.values(plan_.weights), dx, false,
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

const LayerKind kLayerNormKind{api::LayerType::kLayerNorm, plan_layer_norm, make_row_norm,
                               /*reads=*/{.input = true}};
const LayerKind kRmsNormKind{api::LayerType::kRmsNorm, plan_rms_norm, make_row_norm,
                             /*reads=*/{.input = true}};

}  // namespace fettle::trainer
