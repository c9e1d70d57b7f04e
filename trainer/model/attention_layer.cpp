// Attention: causal, with several heads. Its input has queries, keys and values side by side, as a
// linear layer with three times the units computes them; it has no parameters of its own.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

constexpr std::int64_t kParts = 3;  // queries, keys, values

class AttentionLayer final : public Layer {
 public:
  explicit AttentionLayer(std::unique_ptr<kernels::AttentionOp> op) : op_(std::move(op)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    op_->forward(pass.samples, at.x, at.y);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    if (at.dx != nullptr) op_->backward(pass.samples, at.x, at.y, at.dy, at.dx);
  }

 private:
  std::unique_ptr<kernels::AttentionOp> op_;
};

Status plan_attention(const api::ModelConfig&, const api::LayerConfig& config, bool,
                      LayerPlan& layer) {
  if (!layer.tokens) {
    return invalid(layer.name + ": takes a sequence of tokens; put an embedding before it");
  }
  if (!config.heads) return invalid(layer.name + ": heads is missing; say how many it has");
  const std::int64_t channels = layer.input.channels;
  if (channels % (kParts * *config.heads) != 0) {
    return invalid(layer.name + ": takes " + std::to_string(channels) +
                   " numbers a token, which do not split into queries, keys and values of " +
                   std::to_string(*config.heads) +
                   " equal heads; expected a multiple of 3 x heads, from a linear layer before it");
  }
  layer.heads = *config.heads;
  layer.output.channels = channels / kParts;
  const std::int64_t length = layer.input.height;        // tokens in a sample
  const std::int64_t pairs = length * (length + 1) / 2;  // causal: a query sees no later key
  // Two products for each pair: query times key, then its weight times the value.
  layer.multiply_adds = 2 * static_cast<double>(pairs) * static_cast<double>(layer.output.channels);
  return success();
}

Result<std::unique_ptr<Layer>> make_attention(const LayerPlan& plan, const LayerContext& context) {
  const kernels::AttentionShape shape{plan.input.height, plan.heads,
                                      plan.output.channels / plan.heads};
  FETTLE_ASSIGN(auto op, context.backend.attention(shape, context.options));
  return std::unique_ptr<Layer>(std::make_unique<AttentionLayer>(std::move(op)));
}

}  // namespace

const LayerKind kAttentionKind{api::LayerType::kAttention, plan_attention, make_attention,
                               /*reads=*/{.input = true, .output = true}};

}  // namespace fettle::trainer
