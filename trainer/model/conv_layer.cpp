// Conv: two-dimensional cross-correlation with square kernels and zero padding.
#include "trainer/model/layer_kinds.h"
#include "trainer/model/weighted_layer.h"

namespace fettle::trainer {

namespace {

kernels::ConvShape shape_of(const LayerPlan& plan) {
  return {plan.input,  plan.output.channels, plan.kernel_height,
          plan.stride, plan.padding,         plan.bias,
          plan.relu};
}

Status plan_conv(const api::ModelConfig& model, const api::LayerConfig& config, bool before_norm,
                 LayerPlan& layer) {
  if (!config.channels) {
    return invalid(layer.name + ": channels is missing; say how many output channels it has");
  }
  const std::int64_t kernel = config.kernel.value_or(model.kernel);
  layer.kernel_height = layer.kernel_width = kernel;
  layer.stride = config.stride.value_or(1);
  layer.padding = config.padding.value_or((kernel - 1) / 2);  // an odd kernel keeps the size
  const std::int64_t height = layer.input.height + 2 * layer.padding;
  const std::int64_t width = layer.input.width + 2 * layer.padding;
  if (kernel > height || kernel > width) {
    return invalid(layer.name + ": kernel " + std::to_string(kernel) + " does not fit " +
                   std::to_string(height) + "×" + std::to_string(width) + " (with its padding)");
  }
  layer.output.channels = *config.channels;  // read by shape_of()
  layer.output = shape_of(layer).output();
  plan_weights(*config.channels, kernel * kernel * layer.input.channels,
               config.bias.value_or(!before_norm), layer);
  // Every weight is used once for each pixel of the output.
  layer.multiply_adds = static_cast<double>(layer.weights.count) *
                        static_cast<double>(layer.output.height * layer.output.width);
  return success();
}

Result<std::unique_ptr<Layer>> make_conv(const LayerPlan& plan, const LayerContext& context) {
  FETTLE_ASSIGN(auto op, context.backend.conv(shape_of(plan), context.options));
  return std::unique_ptr<Layer>(std::make_unique<WeightedLayer<kernels::WeightedOp>>(
      plan, context.parameters, std::move(op)));
}

}  // namespace

const LayerKind kConvKind{api::LayerType::kConv,     plan_conv,           make_conv,
                          /*reads=*/{.input = true}, /*fuses_relu=*/true, /*decays=*/true};

}  // namespace fettle::trainer
