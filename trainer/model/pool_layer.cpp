// Max and average pooling over square windows without padding, and global (average) pooling.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class PoolLayer final : public Layer {
 public:
  explicit PoolLayer(std::unique_ptr<kernels::PoolOp> op) : op_(std::move(op)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    op_->forward(pass.samples, at.x, at.y);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    if (at.dx != nullptr) op_->backward(pass.samples, at.x, at.y, at.dy, at.dx);
  }

 private:
  std::unique_ptr<kernels::PoolOp> op_;
};

kernels::PoolShape shape_of(const LayerPlan& plan) {
  const auto kind =
      plan.type == api::LayerType::kMaxPool ? kernels::PoolKind::kMax : kernels::PoolKind::kAverage;
  return {kind, plan.input, plan.kernel_height, plan.kernel_width, plan.stride};
}

Status plan_pool(const api::ModelConfig&, const api::LayerConfig& config, bool, LayerPlan& layer) {
  constexpr std::int64_t kDefaultKernel = 2;
  const std::int64_t kernel = config.kernel.value_or(kDefaultKernel);
  if (config.padding.value_or(0) != 0) {
    return invalid(layer.name + ": padding is " + std::to_string(*config.padding) +
                   "; pooling layers have none, leave it out");
  }
  if (kernel > layer.input.height || kernel > layer.input.width) {
    return invalid(layer.name + ": kernel " + std::to_string(kernel) + " does not fit " +
                   std::to_string(layer.input.height) + "×" + std::to_string(layer.input.width));
  }
  layer.kernel_height = layer.kernel_width = kernel;
  layer.stride = config.stride.value_or(kernel);
  layer.output = shape_of(layer).output();
  return success();
}

Status plan_global_pool(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan& layer) {
  layer.kernel_height = layer.input.height;
  layer.kernel_width = layer.input.width;
  layer.output = {1, 1, layer.input.channels};
  return success();
}

Result<std::unique_ptr<Layer>> make_pool(const LayerPlan& plan, const LayerContext& context) {
  FETTLE_ASSIGN(auto op, context.backend.pool(shape_of(plan), context.options));
  return std::unique_ptr<Layer>(std::make_unique<PoolLayer>(std::move(op)));
}

}  // namespace

const LayerKind kMaxPoolKind{api::LayerType::kMaxPool, plan_pool, make_pool,
                             /*reads=*/{.input = true, .output = true}};
const LayerKind kAveragePoolKind{api::LayerType::kAveragePool, plan_pool, make_pool, /*reads=*/{}};
const LayerKind kGlobalPoolKind{api::LayerType::kGlobalPool, plan_global_pool, make_pool,
                                /*reads=*/{}};

}  // namespace fettle::trainer
