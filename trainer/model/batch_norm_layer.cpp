// BatchNorm: per channel, over the samples of the micro-batch and their pixels (Ioffe, Szegedy
// 2015), with PyTorch's running statistics. A micro-batch is the whole batch, or with
// training.normGroup one group of it: with this layer maxPerWorker is refused, because it would cut
// the batch elsewhere (data/batching.h). A frozen layer uses its running statistics.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class BatchNormLayer final : public Layer {
 public:
  BatchNormLayer(const LayerPlan& plan, Parameters& parameters,
                 std::unique_ptr<kernels::BatchNormOp> op)
      : plan_(plan), parameters_(parameters), op_(std::move(op)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    const float* scale = parameters_.values(plan_.weights);
    const float* shift = parameters_.values(plan_.biases);
    // A repeated forward pass has a separate array, to leave the running statistics unchanged.
    float* statistics = pass.statistics ? pass.statistics : parameters_.statistics.data();
    float* mean = statistics + plan_.running_mean.offset;
    float* variance = statistics + plan_.running_variance.offset;
    const kernels::BlockEnd end{at.shortcut, plan_.end_relu};
    // at.shortcut is nullptr, and nothing is added, unless this norm ends a block.
    if (pass.training && !plan_.frozen) {
      op_->forward_training(pass.samples, at.x, scale, shift, mean, variance, at.y, end);
    } else {
      op_->forward_inference(pass.samples, at.x, scale, shift, mean, variance, at.y, end);
    }
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    const float* scale = parameters_.values(plan_.weights);
    float* scale_gradient = parameters_.gradient(plan_.weights);
    float* shift_gradient = parameters_.gradient(plan_.biases);
    // A batch norm that ends a block steps back with its add. Without a ReLU (y is nullptr) and
    // without a second part of the gradient (other) the add has nothing to do: dy is the gradient
    // by both summands.
    if (plan_.ends_block && (at.y != nullptr || at.other != nullptr)) {
      op_->backward_end(pass.samples, at.x, at.y, at.dy, at.other, scale, at.dx, scale_gradient,
                        shift_gradient);
    } else {
      op_->backward(pass.samples, at.x, at.y, at.dy, scale, at.dx, scale_gradient, shift_gradient);
    }
  }

 private:
  const LayerPlan plan_;
  Parameters& parameters_;
  std::unique_ptr<kernels::BatchNormOp> op_;
};

Status plan_batch_norm(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan& layer) {
  const std::int64_t channels = layer.input.channels;
  layer.weights = {.count = channels, .fill = 1};
  layer.biases = {.count = channels, .fill = 0};
  layer.running_mean = {.count = channels, .fill = 0};
  layer.running_variance = {.count = channels, .fill = 1};
  return success();
}

Result<std::unique_ptr<Layer>> make_batch_norm(const LayerPlan& plan, const LayerContext& context) {
  kernels::BatchNormShape shape;
  shape.input = plan.input;
  shape.relu = plan.relu;
  FETTLE_ASSIGN(auto op, context.backend.batch_norm(shape, context.options));
  return std::unique_ptr<Layer>(
      std::make_unique<BatchNormLayer>(plan, context.parameters, std::move(op)));
}

}  // namespace

const LayerKind kBatchNormKind{api::LayerType::kBatchNorm, plan_batch_norm, make_batch_norm,
                               /*reads=*/{.input = true}, /*fuses_relu=*/true};

}  // namespace fettle::trainer
