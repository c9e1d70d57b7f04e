// Quantize: the input on the byte grid of its range (kernels/quantize/formulas.h): what a layer
// that computes in 8 bits would see. Only in networks of quantized_inputs.h. In training the range
// follows the micro-batch first, as batch norm's statistics do, and gradients pass where the range
// does not cut the input off.
#include "base/check.h"
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

// Share of the way that a range moves with a step: torch.ao's MovingAverageMinMaxObserver.
constexpr float kShare = 0.01F;

class QuantizeLayer final : public Layer {
 public:
  QuantizeLayer(const LayerPlan& plan, const LayerContext& context)
      : plan_(plan),
        type_(context.options.type),
        backend_(context.backend),
        parameters_(context.parameters) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    if (pass.observer != nullptr) {
      CHECK(type_ == kernels::DataType::kFloat32, "an observer takes fp32");
      (*pass.observer)(plan_, static_cast<const float*>(at.x), count(pass));
      return copy(pass, at.x, at.y);
    }
    if (!parameters_.quantizes) return copy(pass, at.x, at.y);
    // A repeated pass must see the range that the first one left.
    const bool repeated = pass.statistics != nullptr;
    if (pass.training && !repeated) {
      backend_.track_range(type_, count(pass), at.x, kShare, range());
    }
    backend_.fake_quantize(type_, count(pass), range(), at.x, at.y);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    if (at.dx == nullptr) return;
    if (!parameters_.quantizes) return copy(pass, at.dy, at.dx);
    backend_.fake_quantize_backward(type_, count(pass), range(), at.x, at.dy, at.dx);
  }

 private:
  std::int64_t count(const Pass& pass) const { return pass.samples * plan_.input.size(); }
  float* range() { return parameters_.statistics.data() + plan_.range.offset; }
  void copy(const Pass& pass, kernels::ConstBuffer from, kernels::Buffer to) {
    backend_.copy(from, to, count(pass) * kernels::size_of(type_));
  }

  const LayerPlan plan_;
  const kernels::DataType type_;
  kernels::Backend& backend_;
  Parameters& parameters_;
};

Status plan_quantize(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan& layer) {
  return invalid(layer.name + " is made by the trainer itself");
}

Result<std::unique_ptr<Layer>> make_quantize(const LayerPlan& plan, const LayerContext& context) {
  return std::unique_ptr<Layer>(std::make_unique<QuantizeLayer>(plan, context));
}

}  // namespace

const LayerKind kQuantizeKind{.type = api::LayerType::kQuantize,
                              .plan = plan_quantize,
                              .make = make_quantize,
                              .reads = {.input = true}};

}  // namespace fettle::trainer
