// Dropout: keeps an element with probability 1 - rate and scales it by 1 / (1 - rate) in training;
// passes all elements through in evaluation.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class DropoutLayer final : public Layer {
 public:
  // `op`: nullptr if nothing is ever dropped.
  DropoutLayer(kernels::Backend& backend, std::int64_t layer, std::int64_t bytes_per_sample,
               std::unique_ptr<kernels::DropoutOp> op)
      : backend_(backend), layer_(layer), bytes_per_sample_(bytes_per_sample), op_(std::move(op)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    if (pass.training && op_) {
      op_->forward(pass.samples, pass.indices, key(pass), at.x, at.y);
    } else {
      copy(pass, at.x, at.y);
    }
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    if (at.dx == nullptr) return;
    if (op_) {
      op_->backward(pass.samples, pass.indices, key(pass), at.dy, at.dx);
    } else {
      copy(pass, at.dy, at.dx);
    }
  }

 private:
  void copy(const Pass& pass, kernels::ConstBuffer from, kernels::Buffer to) const {
    backend_.copy(from, to, pass.samples * bytes_per_sample_);
  }
  kernels::DropoutKey key(const Pass& pass) const {
    return {pass.seed, pass.epoch, static_cast<std::uint32_t>(layer_)};
  }

  kernels::Backend& backend_;
  const std::int64_t layer_;  // in model.layers: the masks of two layers differ
  const std::int64_t bytes_per_sample_;
  std::unique_ptr<kernels::DropoutOp> op_;
};

Status plan_dropout(const api::ModelConfig& model, const api::LayerConfig& config, bool,
                    LayerPlan& layer) {
  layer.rate = static_cast<float>(config.rate.value_or(model.dropout));
  if (!(layer.rate >= 0 && layer.rate < 1)) {
    return invalid(layer.name + ": rate is " + std::to_string(layer.rate) +
                   "; expected at least 0 and less than 1");
  }
  return success();
}

Result<std::unique_ptr<Layer>> make_dropout(const LayerPlan& plan, const LayerContext& context) {
  const std::int64_t elements = plan.input.size();
  std::unique_ptr<kernels::DropoutOp> op;
  if (plan.rate > 0) op = context.backend.dropout(plan.rate, elements, context.options.type);
  return std::unique_ptr<Layer>(std::make_unique<DropoutLayer>(
      context.backend, plan.index, elements * kernels::size_of(context.options.type),
      std::move(op)));
}

}  // namespace

const LayerKind kDropoutKind{api::LayerType::kDropout, plan_dropout, make_dropout, /*reads=*/{}};

}  // namespace fettle::trainer
