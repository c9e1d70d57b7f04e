// Quantize: the input on the byte grid of its range (kernels/quantize/formulas.h), in fp32: what a
// layer that computes in 8 bits would see. Only in networks of quantized_plan.h, which are
// evaluated, never trained.
#include "base/check.h"
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class QuantizeLayer final : public Layer {
 public:
  QuantizeLayer(const LayerPlan& plan, const LayerContext& context)
      : plan_(plan), backend_(context.backend), parameters_(context.parameters) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    const std::int64_t count = pass.samples * plan_.input.size();
    const auto* x = static_cast<const float*>(at.x);
    if (pass.observer != nullptr) {
      (*pass.observer)(plan_, x, count);
      backend_.copy(x, at.y, count * std::int64_t{sizeof(float)});
      return;
    }
    const float* range = parameters_.statistics.data() + plan_.range.offset;
    backend_.fake_quantize(kernels::DataType::kFloat32, count, range, x, at.y);
  }

  void backward(const Pass&, const BackwardBuffers&) override {
    check_failed(__FILE__, __LINE__, "backward", "a quantised network is not trained");
  }

 private:
  const LayerPlan plan_;
  kernels::Backend& backend_;
  Parameters& parameters_;
};

Status plan_quantize(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan& layer) {
  return invalid(layer.name + " is made by the trainer itself");
}

Result<std::unique_ptr<Layer>> make_quantize(const LayerPlan& plan, const LayerContext& context) {
  CHECK(context.options.type == kernels::DataType::kFloat32, "a grid of 8 bits is kept in fp32");
  return std::unique_ptr<Layer>(std::make_unique<QuantizeLayer>(plan, context));
}

}  // namespace

const LayerKind kQuantizeKind{
    .type = api::LayerType::kQuantize, .plan = plan_quantize, .make = make_quantize, .reads = {}};

}  // namespace fettle::trainer
