// Embedding: turns tokens into vectors, and adds a vector for their position in the sample; both
// are learnt. Head: turns vectors into logits over the vocabulary with the embedding's own matrix
// (Press, Wolf 2017): its gradient is added to the embedding's.
#include "trainer/model/layer_kinds.h"
#include "trainer/model/weighted_layer.h"

namespace fettle::trainer {

namespace {

constexpr double kDeviation = 0.02;  // GPT-2's

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const LayerPlan& plan, Parameters& parameters,
                 std::unique_ptr<kernels::EmbeddingOp> op)
      : plan_(plan), parameters_(parameters), op_(std::move(op)) {}

  void forward(const Pass& pass, const ForwardBuffers& at) override {
    op_->forward(pass.samples, static_cast<const std::int32_t*>(at.x), table(plan_.weights),
                 table(plan_.positions), at.y);
  }

  void backward(const Pass& pass, const BackwardBuffers& at) override {
    op_->backward(pass.samples, static_cast<const std::int32_t*>(at.x), at.dy,
                  parameters_.gradient(plan_.weights), parameters_.gradient(plan_.positions));
  }

 private:
  kernels::ConstBuffer table(const Block& block) {
    return plan_.wide ? parameters_.values(block) : parameters_.typed(block);
  }

  const LayerPlan plan_;
  Parameters& parameters_;
  std::unique_ptr<kernels::EmbeddingOp> op_;
};

Status plan_embedding(const api::ModelConfig&, const api::LayerConfig& config, bool,
                      LayerPlan& layer) {
  if (!config.units) {
    return invalid(layer.name + ": units is missing; say how many numbers a token becomes");
  }
  const double deviation = config.deviation.value_or(kDeviation);
  layer.output = {layer.input.height, 1, *config.units};
  layer.weights = {.count = layer.vocabulary * *config.units, .deviation = deviation};
  layer.positions = {.count = layer.output.size(), .deviation = deviation};
  return success();
}

Result<std::unique_ptr<Layer>> make_embedding(const LayerPlan& plan, const LayerContext& context) {
  const kernels::EmbeddingShape shape{plan.vocabulary, plan.output.height, plan.output.channels};
  FETTLE_ASSIGN(auto op, context.backend.embedding(shape, context.options));
  return std::unique_ptr<Layer>(
      std::make_unique<EmbeddingLayer>(plan, context.parameters, std::move(op)));
}

Status plan_head(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan& layer) {
  layer.output = {layer.input.height, 1, layer.vocabulary};
  layer.multiply_adds = static_cast<double>(layer.input.height * layer.shared.count);
  return success();
}

Result<std::unique_ptr<Layer>> make_head(const LayerPlan& plan, const LayerContext& context) {
  const kernels::LinearShape shape{plan.input.channels, plan.vocabulary, /*bias=*/false,
                                   /*relu=*/false};
  FETTLE_ASSIGN(auto op, context.backend.linear(shape, by_rows(context.options, plan)));
  return std::unique_ptr<Layer>(std::make_unique<WeightedLayer<kernels::LinearOp>>(
      plan, context.parameters, std::move(op), rows_of(plan)));
}

}  // namespace

const LayerKind kEmbeddingKind{api::LayerType::kEmbedding, plan_embedding,       make_embedding,
                               /*reads=*/{.input = true},  /*fuses_relu=*/false, /*decays=*/true};
const LayerKind kHeadKind{api::LayerType::kHead, plan_head, make_head, /*reads=*/{.input = true}};

}  // namespace fettle::trainer
