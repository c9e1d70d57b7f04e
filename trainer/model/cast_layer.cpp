// Cast: converts from fp32 to the network's 16-bit type or back, next to an fp32 residual stream
// (wide_residuals.h). The gradient is cast the other way. In an fp32 network it copies.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

class CastLayer final : public Layer {
 public:
  CastLayer(const LayerPlan& plan, const LayerContext& context)
      : backend_(context.backend),
        type_(context.options.type),
        elements_(plan.input.size()),
        to_fp32_(plan.wide) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    cast(pass.samples * elements_, at.x, at.y, to_fp32_);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    if (at.dx != nullptr) cast(pass.samples * elements_, at.dy, at.dx, !to_fp32_);
  }

 private:
  void cast(std::int64_t count, kernels::ConstBuffer from, kernels::Buffer to, bool to_fp32) {
    if (type_ == kernels::DataType::kFloat32) {
      backend_.copy(from, to, count * kernels::size_of(type_));
    } else if (to_fp32) {
      backend_.widen(type_, count, static_cast<const std::uint16_t*>(from),
                     static_cast<float*>(to));
    } else {
      backend_.round(type_, count, static_cast<const float*>(from),
                     static_cast<std::uint16_t*>(to));
    }
  }

  kernels::Backend& backend_;
  const kernels::DataType type_;  // of the network
  const std::int64_t elements_;   // of a sample
  const bool to_fp32_;
};

Status plan_cast(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan& layer) {
  return invalid(layer.name + " is made by the trainer itself");
}

Result<std::unique_ptr<Layer>> make_cast(const LayerPlan& plan, const LayerContext& context) {
  return std::unique_ptr<Layer>(std::make_unique<CastLayer>(plan, context));
}

}  // namespace

const LayerKind kCastKind{
    .type = api::LayerType::kCast, .plan = plan_cast, .make = make_cast, .reads = {}};

}  // namespace fettle::trainer
