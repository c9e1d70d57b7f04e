// Add ends a residual block (He et al. 2016): the sum of its layers' output and its shortcut's, and
// a fused ReLU. The gradient of both is that of the sum: the first summand takes it over in place,
// the second shares it, gets a copy, or has it added (backward_plan.h). A norm that follows may
// compute the sum itself; then only the backward pass runs here. A batch norm before the add may do
// so, too, and usually also runs its backward pass.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class AddLayer final : public Layer {
 public:
  // `relu`: nullptr if no ReLU is fused.
  AddLayer(const LayerContext& context, std::int64_t elements,
           std::unique_ptr<kernels::ReluOp> relu)
      : backend_(context.backend),
        type_(context.options.type),
        elements_(elements),
        relu_(std::move(relu)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    backend_.add(type_, pass.samples * elements_, at.x, at.shortcut, at.y, relu_ != nullptr);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    const std::int64_t count = pass.samples * elements_;
    if (relu_) relu_->backward(count, at.y, at.dy, at.dy);
    if (at.dx == nullptr) return;
    if (at.adds) return backend_.add(type_, count, at.dx, at.dy, at.dx, /*relu=*/false);
    backend_.copy(at.dy, at.dx, count * kernels::size_of(type_));
  }

 private:
  kernels::Backend& backend_;
  const kernels::DataType type_;
  const std::int64_t elements_;  // of a sample
  std::unique_ptr<kernels::ReluOp> relu_;
};

Status plan_add(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan&) {
  return success();
}

Result<std::unique_ptr<Layer>> make_add(const LayerPlan& plan, const LayerContext& context) {
  auto relu = plan.relu ? context.backend.relu(context.options.type) : nullptr;
  return std::unique_ptr<Layer>(
      std::make_unique<AddLayer>(context, plan.output.size(), std::move(relu)));
}

}  // namespace

const LayerKind kAddKind{.type = api::LayerType::kAdd,
                         .plan = plan_add,
                         .make = make_add,
                         .reads = {},
                         .fuses_relu = true,
                         .adds_gradients = true};

}  // namespace fettle::trainer
