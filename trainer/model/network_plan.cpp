#include "trainer/model/network_plan.h"

#include <algorithm>
#include <optional>

#include "api/fields/enum_names.h"
#include "trainer/model/gpt.h"
#include "trainer/model/layer_kinds.h"
#include "trainer/model/quantized_inputs.h"
#include "trainer/model/wide_residuals.h"

namespace fettle::trainer {

namespace {

constexpr std::int64_t kMaxParameters = std::int64_t{1} << 31;
constexpr std::int64_t kMaxActivations = std::int64_t{1} << 28;  // of one sample in one layer

std::string layer_name(const api::ModelConfig& model, std::size_t i) {
  return "model.layers[" + std::to_string(i) + "] (" +
         std::string(api::to_string(model.layers[i].type)) + ")";
}

bool can_fuse_relu(const LayerPlan& layer) { return kind_of(layer.type).fuses_relu && !layer.relu; }

// Allocates floats of one array, in blocks that start on cache lines.
class Allocator {
 public:
  explicit Allocator(std::int64_t first = 0) : used_(first) {}
  void place(Block& block) {
    constexpr std::int64_t kFloatsPerLine = 16;
    block.offset = used_;
    used_ += (block.count + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
  }
  std::int64_t used() const { return used_; }

 private:
  std::int64_t used_;
};

// Places the blocks that weight decay applies to first, in the order of the layers, then the
// others.
void place_blocks(NetworkPlan& plan) {
  const auto decays = [](const LayerPlan& layer) { return kind_of(layer.type).decays; };
  Allocator decayed;
  for (LayerPlan& layer : plan.layers) {
    if (!decays(layer)) continue;
    decayed.place(layer.weights);
    decayed.place(layer.positions);  // of an embedding; empty for other layers
  }
  plan.decayed = decayed.used();
  Allocator others(decayed.used());
  Allocator statistics;
  for (LayerPlan& layer : plan.layers) {
    if (!decays(layer)) others.place(layer.weights);
    others.place(layer.biases);
    statistics.place(layer.running_mean);
    statistics.place(layer.running_variance);
    if (layer.frozen) plan.frozen_statistics = statistics.used();
  }
  for (LayerPlan& layer : plan.layers) {
    // Repeats check_embedding()'s assignment: only now the embedding's weights have their offset.
    if (layer.type == api::LayerType::kHead) layer.shared = plan.layers.front().weights;
  }
  plan.parameters = others.used();
  plan.statistics = statistics.used();
}

Status check_size(const LayerPlan& layer) {
  if (layer.output.size() > kMaxActivations) {
    return invalid(layer.name + ": gives " + std::to_string(layer.output.size()) +
                   " numbers a sample; at most " + std::to_string(kMaxActivations) +
                   " are possible");
  }
  if (layer.weights.count > kMaxParameters) {
    return invalid(layer.name + ": has " + std::to_string(layer.weights.count) +
                   " weights; at most " + std::to_string(kMaxParameters) + " are possible");
  }
  return success();
}

std::string to_words(const kernels::ImageShape& shape) {
  return std::to_string(shape.height) + "×" + std::to_string(shape.width) + "×" +
         std::to_string(shape.channels);
}

// Reads model.layers from the first to the last.
class Planner {
 public:
  Planner(const api::ModelConfig& model, NetworkPlan& plan)
      : model_(model), plan_(plan), at_{kNetworkInput, plan.input, false} {}

  Status take(std::size_t i) {
    switch (model_.layers[i].type) {
      case api::LayerType::kFlatten:
        // The memory layout does not change.
        at_ = {at_.layer, {1, 1, at_.shape.size()}, /*tokens=*/false};
        return success();
      case api::LayerType::kResidual:
        if (open_.empty()) ++stage_;
        open_.push_back({layer_name(model_, i), /*entry=*/at_, /*main=*/{}});
        fusible_ = false;  // the block's input is also its shortcut's
        return success();
      case api::LayerType::kShortcut:
        return begin_shortcut(i);
      case api::LayerType::kAdd:
        return end_block(i);
      default:
        return take_layer(i);
    }
  }

  Status finish() const {
    if (open_.empty()) return success();
    return invalid(open_.back().name +
                   ": the block does not end; put {type: add} after its layers");
  }

  const kernels::ImageShape& output() const { return at_.shape; }
  bool ends_with_tokens() const { return at_.tokens; }

 private:
  // A layer's output, or the network's input.
  struct Source {
    std::int64_t layer = kNetworkInput;
    kernels::ImageShape shape;
    bool tokens = false;  // a sequence
  };
  struct Block {
    std::string name;
    Source entry;
    std::optional<Source> main;  // the end of its layers, once its shortcut has begun
  };

  LayerPlan next_layer(std::size_t i) const {
    LayerPlan layer;
    layer.type = model_.layers[i].type;
    layer.index = static_cast<std::int64_t>(i);
    layer.name = layer_name(model_, i);
    layer.source = at_.layer;
    layer.input = at_.shape;
    layer.output = at_.shape;
    layer.tokens = at_.tokens;
    layer.frozen = layer.index < model_.freeze.value_or(0);
    layer.stage = stage_;
    return layer;
  }

  void push(LayerPlan layer) {
    const bool tokens = layer.tokens || layer.type == api::LayerType::kEmbedding;
    at_ = {std::ssize(plan_.layers), layer.output, tokens};
    fusible_ = true;
    plan_.layers.push_back(std::move(layer));
  }

  Status take_layer(std::size_t i) {
    const api::LayerConfig& config = model_.layers[i];
    // fusible_: only this layer reads the output of the plan's last layer.
    if (config.type == api::LayerType::kRelu && fusible_ && can_fuse_relu(plan_.layers.back())) {
      fuse_relu();
      return success();
    }
    const bool before_norm =
        i + 1 < model_.layers.size() && model_.layers[i + 1].type == api::LayerType::kBatchNorm;
    LayerPlan layer = next_layer(i);
    FETTLE_TRY(check_embedding(layer));
    layer.vocabulary = plan_.classes;
    FETTLE_TRY(kind_of(config.type).plan(model_, config, before_norm, layer));  // shapes, blocks
    FETTLE_TRY(check_size(layer));
    if (drops_nothing(layer)) return success();
    fuse_gelu(layer);
    if (begins_stage(layer)) layer.stage = ++stage_;
    push(std::move(layer));
    return success();
  }

  // A norm belongs to the layer before it, and all layers of a block to the block.
  bool begins_stage(const LayerPlan& layer) const {
    const bool weighs = kind_of(layer.type).decays || layer.type == api::LayerType::kHead;
    return weighs && open_.empty();
  }

  // Dropout of rate 0 changes no number and is left out, unless it is a block's only layer so far.
  bool drops_nothing(const LayerPlan& layer) const {
    const bool first_of_block = !open_.empty() && open_.back().entry.layer == at_.layer;
    return layer.type == api::LayerType::kDropout && layer.rate == 0 && !first_of_block;
  }

  void fuse_relu() {
    plan_.layers.back().relu = true;
    if (plan_.layers.size() < 2) return;
    // A batch norm that computes an add's sum also runs the add's ReLU.
    LayerPlan& before = plan_.layers[plan_.layers.size() - 2];
    before.end_relu = before.ends_block;
  }

  // Fuses the GELU of linear, GELU, linear, if each is the only reader of the output before it.
  void fuse_gelu(LayerPlan& layer) {
    const bool linear_before = fusible_ && plan_.layers.back().type == api::LayerType::kLinear &&
                               !plan_.layers.back().relu;
    const bool gelu_before = fusible_ && plan_.layers.back().type == api::LayerType::kGelu;
    if (layer.type == api::LayerType::kLinear && gelu_before && gelu_after_linear_) {
      layer.gelu_before = plan_.layers.back().gelu;
      plan_.layers[plan_.layers.size() - 2].gelu_after = layer.gelu_before;
    }
    gelu_after_linear_ = layer.type == api::LayerType::kGelu && linear_before;
  }

  // Tokens must be embedded first; `head` maps back to the embedding's input.
  Status check_embedding(LayerPlan& layer) const {
    const bool embeds = layer.type == api::LayerType::kEmbedding;
    const bool takes_ids = plan_.tokens && at_.layer == kNetworkInput;
    if (takes_ids && !embeds) {
      return invalid(layer.name +
                     ": takes token ids; begin model.layers with {type: embedding, units: ...}");
    }
    if (embeds && !takes_ids) {
      return invalid(layer.name +
                     ": has no token ids before it; it is the first layer for text, and for "
                     "nothing else");
    }
    if (layer.type != api::LayerType::kHead) return success();
    const bool tied = layer.tokens && plan_.layers.front().type == api::LayerType::kEmbedding;
    if (!tied) return invalid(layer.name + ": needs tokens and an embedding that they come from");
    layer.shared = plan_.layers.front().weights;
    layer.frozen = plan_.layers.front().frozen;  // one matrix
    const std::int64_t units = plan_.layers.front().output.channels;
    if (layer.input.channels == units) return success();
    return invalid(layer.name + ": takes " + std::to_string(layer.input.channels) +
                   " numbers a token, but the embedding has units " + std::to_string(units) +
                   "; make them equal");
  }

  Status begin_shortcut(std::size_t i) {
    FETTLE_TRY(check_inside(i));
    Block& block = open_.back();
    if (block.main) return invalid(layer_name(model_, i) + ": the block has a shortcut already");
    block.main = at_;
    at_ = block.entry;
    fusible_ = false;
    return success();
  }

  Status end_block(std::size_t i) {
    FETTLE_TRY(check_inside(i));
    const Block block = open_.back();
    open_.pop_back();
    // With {type: shortcut} the layers before this add are the shortcut's; else the shortcut is the
    // identity.
    const Source shortcut = block.main ? at_ : block.entry;
    at_ = block.main.value_or(at_);
    LayerPlan layer = next_layer(i);
    layer.shortcut = shortcut.layer;
    if (at_.shape != shortcut.shape) {
      return invalid(
          layer.name + ": the layers of the block give " + to_words(at_.shape) + ", its shortcut " +
          to_words(shortcut.shape) +
          "; put {type: shortcut} and a conv with kernel 1 and that stride and number of "
          "channels before it");
    }
    // The last of the block's main layers, or of its shortcut's: check_inside() has verified that
    // one exists.
    LayerPlan& last = plan_.layers.back();
    last.ends_block = fusible_ && last.type == api::LayerType::kBatchNorm && !last.relu;
    push(std::move(layer));
    return success();
  }

  Status check_inside(std::size_t i) const {
    if (open_.empty()) {
      return invalid(layer_name(model_, i) +
                     ": is outside of a block; begin it with {type: residual}");
    }
    const Block& block = open_.back();
    if (block.main || at_.layer != block.entry.layer) return success();
    return invalid(layer_name(model_, i) + ": the block has no layers before it");
  }

  const api::ModelConfig& model_;
  NetworkPlan& plan_;
  Source at_;
  std::int64_t stage_ = 0;          // LayerPlan::stage
  bool fusible_ = false;            // only the next layer reads the last layer's output
  bool gelu_after_linear_ = false;  // the last layer is a GELU, the only reader of a linear layer
  std::vector<Block> open_;
};

Status check_logits(const Planner& planner, const NetworkPlan& plan) {
  const std::string classes = std::to_string(plan.classes);
  if (plan.tokens) {
    // Pooling may have left fewer places than the text has tokens.
    const kernels::ImageShape expected{plan.predictions(), 1, plan.classes};
    if (planner.ends_with_tokens() && planner.output() == expected) return success();
    return invalid("model.layers ends with " + to_words(planner.output()) +
                   " numbers, but the text has " + std::to_string(plan.predictions()) +
                   " tokens a sample out of " + classes +
                   "; end it with {type: head} or {type: "
                   "linear, units: " +
                   classes + "}, without flatten");
  }
  const std::int64_t outputs = planner.output().size();
  if (outputs == plan.classes) return success();
  return invalid("model.layers ends with " + std::to_string(outputs) +
                 " outputs, but the data have " + classes +
                 " classes; end it with {type: linear, units: " + classes + "}");
}

}  // namespace

// A product of a layer's size gives its output, a second one the gradient by its weights if it is
// trained, and a third one the gradient by its input if a layer before it is trained. An embedding
// is trained and has no products.
double NetworkPlan::training_flops() const {
  double total = 0;
  bool trained_before = false;
  constexpr double kFlopsPerMultiplyAdd = 2;
  for (const LayerPlan& layer : layers) {
    // Attention has two operands and no weights.
    const bool two_operands = trained_before && !layer.has_parameters();
    const int products =
        1 + (layer.is_trained() || two_operands ? 1 : 0) + (trained_before ? 1 : 0);
    total += kFlopsPerMultiplyAdd * layer.multiply_adds * products;
    trained_before = trained_before || layer.is_trained();
  }
  return total;
}

std::int64_t NetworkPlan::first_trained() const {
  for (const LayerPlan& layer : layers) {
    if (layer.is_trained() && layer.weights.count > 0 && layer.weights.offset < decayed) {
      return layer.weights.offset;
    }
  }
  return decayed;
}

bool NetworkPlan::trains_quantized() const {
  return std::ranges::any_of(layers, [](const LayerPlan& layer) { return layer.weight_bits > 0; });
}

std::int64_t NetworkPlan::trained() const {
  std::int64_t total = 0;
  for (const LayerPlan& layer : layers) {
    total += layer.weights.count + layer.biases.count + layer.positions.count;
  }
  return total;
}

Result<NetworkPlan> plan_network(const api::ModelConfig& config, const SampleFormat& format) {
  const api::ModelConfig model = config.gpt ? with_layers(config) : config;
  if (model.layers.empty()) return invalid("model.layers is empty; a model has at least one layer");
  NetworkPlan plan;
  plan.input = format.input;
  plan.classes = format.classes;
  plan.tokens = format.tokens;
  plan.vocabulary = format.vocabulary;
  Planner planner(model, plan);
  for (std::size_t i = 0; i < model.layers.size(); ++i) FETTLE_TRY(planner.take(i));
  FETTLE_TRY(planner.finish());
  FETTLE_TRY(check_logits(planner, plan));
  place_blocks(plan);
  if (plan.parameters == 0) {
    return invalid("model.layers has nothing to train; add a linear or conv layer");
  }
  if (std::ranges::none_of(plan.layers, &LayerPlan::is_trained)) {
    return invalid("model.freeze leaves nothing to train; freeze fewer layers");
  }
  if (plan.parameters > kMaxParameters) {
    return invalid("the model has " + std::to_string(plan.parameters) + " parameters; at most " +
                   std::to_string(kMaxParameters) + " are possible");
  }
  return plan;
}

namespace {

Result<NetworkPlan> with_residuals(const api::TrainerConfig& config, const SampleFormat& format) {
  FETTLE_ASSIGN(NetworkPlan plan, plan_network(config.model, format));
  if (!config.training.residual_in_fp32) return plan;
  if (plan.layers.front().type != api::LayerType::kEmbedding) {
    return invalid(
        "training.residualInFp32 is for models that begin with an embedding; torch.autocast keeps "
        "the sums of others in 16 bits, too");
  }
  // Excludes `auto`, which is fp32 on a CPU and TF32 on a GPU.
  const api::Precision precision = config.training.precision;
  const bool is_16_bit = precision == api::Precision::kBf16 || precision == api::Precision::kFp16;
  return is_16_bit ? with_fp32_residuals(plan) : plan;
}

}  // namespace

Result<NetworkPlan> plan_network(const api::TrainerConfig& config, const SampleFormat& format) {
  FETTLE_ASSIGN(NetworkPlan plan, with_residuals(config, format));
  if (!api::trains_quantized(config.training)) return plan;
  return with_quantized_inputs(plan, config.training.quantize->weight_bits);
}

Result<NetworkPlan> plan_network(const api::ModelConfig& model, const kernels::ImageShape& input,
                                 std::int64_t classes) {
  return plan_network(model, SampleFormat{input, classes, false, ""});
}

}  // namespace fettle::trainer
