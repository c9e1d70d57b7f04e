// Linear: y = x W' + b. Takes all numbers of a sample, whatever their shape; of a sequence the
// numbers of one token after the other, as torch.nn.Linear. A GELU between two linear layers is
// fused into them if no other layer reads the first output or the GELU's: the first layer writes
// it, the second layer's backward pass runs through it.
#include "trainer/model/layer_kinds.h"
#include "trainer/model/weighted_layer.h"

namespace fettle::trainer {

namespace {

class LinearLayer final : public WeightedLayer<kernels::LinearOp> {
 public:
  using WeightedLayer::WeightedLayer;

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    if (at.gelu == nullptr) return WeightedLayer::forward(pass, at);
    op().forward_gelu(rows(pass), at.x, at.y, at.gelu);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    if (at.before == nullptr) return WeightedLayer::backward(pass, at);
    op().backward_gelu(rows(pass), at.before, at.x, at.y, at.dy, at.dx, weight_gradient(),
                       bias_gradient());
  }
};

Status plan_linear(const api::ModelConfig&, const api::LayerConfig& config, bool before_norm,
                   LayerPlan& layer) {
  if (!config.units) return invalid(layer.name + ": units is missing; say how many outputs it has");
  const std::int64_t rows = rows_of(layer);
  layer.output = {rows, 1, *config.units};  // each token stays a pixel
  plan_weights(*config.units, layer.input.size() / rows, config.bias.value_or(!before_norm), layer);
  if (config.deviation) {  // weights are drawn from a normal distribution, biases start at 0
    layer.weights.bound = layer.biases.bound = 0;
    layer.weights.deviation = *config.deviation;
  }
  layer.multiply_adds = static_cast<double>(rows * layer.weights.count);
  return success();
}

Result<std::unique_ptr<Layer>> make_linear(const LayerPlan& plan, const LayerContext& context) {
  const kernels::LinearShape shape{plan.input.size() / rows_of(plan),
                                   plan.output.channels,
                                   plan.bias,
                                   plan.relu,
                                   plan.gelu_after,
                                   plan.gelu_before};
  FETTLE_ASSIGN(auto op, context.backend.linear(shape, by_rows(context.options, plan)));
  return std::unique_ptr<Layer>(
      std::make_unique<LinearLayer>(plan, context.parameters, std::move(op), rows_of(plan)));
}

}  // namespace

const LayerKind kLinearKind{api::LayerType::kLinear,   plan_linear,         make_linear,
                            /*reads=*/{.input = true}, /*fuses_relu=*/true, /*decays=*/true};

}  // namespace fettle::trainer
