// Linear: y = x W' + b. Takes all numbers of a sample, whatever their shape.
#include "trainer/model/layer_kinds.h"
#include "trainer/model/weighted_layer.h"

namespace fettle::trainer {

namespace {

Status plan_linear(const api::ModelConfig&, const api::LayerConfig& config, bool before_norm,
                   LayerPlan& layer) {
  if (!config.units) return invalid(layer.name + ": units is missing; say how many outputs it has");
  layer.output = {1, 1, *config.units};
  plan_weights(*config.units, layer.input.size(), config.bias.value_or(!before_norm), layer);
  layer.multiply_adds = static_cast<double>(layer.weights.count);
  return success();
}

Result<std::unique_ptr<Layer>> make_linear(const LayerPlan& plan, const LayerContext& context) {
  const kernels::LinearShape shape{plan.input.size(), plan.output.channels, plan.bias, plan.relu};
  FETTLE_ASSIGN(auto op, context.backend.linear(shape, context.options));
  return std::unique_ptr<Layer>(
      std::make_unique<WeightedLayer>(plan, context.parameters, std::move(op)));
}

}  // namespace

const LayerKind kLinearKind{api::LayerType::kLinear, plan_linear, make_linear, /*fuses_relu=*/true,
                            /*decays=*/true};

}  // namespace fettle::trainer
