#include "trainer/model/network_plan.h"

#include <optional>

#include "api/names.h"
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

constexpr std::int64_t kMaxParameters = std::int64_t{1} << 31;
constexpr std::int64_t kMaxActivations = std::int64_t{1} << 28;  // of one sample in one layer

std::string layer_name(const api::ModelConfig& model, std::size_t i) {
  return "model.layers[" + std::to_string(i) + "] (" +
         std::string(api::to_string(model.layers[i].type)) + ")";
}

bool can_fuse_relu(const LayerPlan& layer) { return kind_of(layer.type).fuses_relu && !layer.relu; }

// Hands out the floats of one array, in blocks that start on cache lines.
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

void place_blocks(NetworkPlan& plan) {
  const auto decays = [](const LayerPlan& layer) { return kind_of(layer.type).decays; };
  Allocator decayed;
  for (LayerPlan& layer : plan.layers) {
    if (decays(layer)) decayed.place(layer.weights);
  }
  plan.decayed = decayed.used();
  Allocator others(decayed.used());
  Allocator statistics;
  for (LayerPlan& layer : plan.layers) {
    if (!decays(layer)) others.place(layer.weights);
    others.place(layer.biases);
    statistics.place(layer.running_mean);
    statistics.place(layer.running_variance);
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
      : model_(model), plan_(plan), at_{kNetworkInput, plan.input} {}

  Status take(std::size_t i) {
    switch (model_.layers[i].type) {
      case api::LayerType::kFlatten:
        at_.shape = {1, 1, at_.shape.size()};  // the memory stays as it is
        return success();
      case api::LayerType::kResidual:
        open_.push_back({layer_name(model_, i), at_, {}});
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

 private:
  // What a layer gives, or the images.
  struct Place {
    std::int64_t layer = kNetworkInput;
    kernels::ImageShape shape;
  };
  struct Block {
    std::string name;
    Place entry;
    std::optional<Place> main;  // the end of its layers, once its shortcut has begun
  };

  LayerPlan next_layer(std::size_t i) const {
    LayerPlan layer;
    layer.type = model_.layers[i].type;
    layer.index = static_cast<std::int64_t>(i);
    layer.name = layer_name(model_, i);
    layer.source = at_.layer;
    layer.input = at_.shape;
    layer.output = at_.shape;
    return layer;
  }

  void push(LayerPlan layer) {
    at_ = {std::ssize(plan_.layers), layer.output};
    fusible_ = true;
    plan_.layers.push_back(std::move(layer));
  }

  Status take_layer(std::size_t i) {
    const api::LayerConfig& config = model_.layers[i];
    if (config.type == api::LayerType::kRelu && fusible_ && can_fuse_relu(plan_.layers.back())) {
      plan_.layers.back().relu = true;
      return success();
    }
    const bool before_norm =
        i + 1 < model_.layers.size() && model_.layers[i + 1].type == api::LayerType::kBatchNorm;
    LayerPlan layer = next_layer(i);
    FETTLE_TRY(kind_of(config.type).plan(model_, config, before_norm, layer));
    FETTLE_TRY(check_size(layer));
    push(std::move(layer));
    return success();
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
    const Place shortcut = block.main ? at_ : block.entry;
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
  Place at_;
  bool fusible_ = false;  // what comes next takes what the last layer gives, and it alone does
  std::vector<Block> open_;
};

}  // namespace

double NetworkPlan::training_flops() const {
  double total = 0;
  bool first = true;
  for (const LayerPlan& layer : layers) {
    if (layer.multiply_adds == 0) continue;
    total += 2 * layer.multiply_adds * (first ? 2 : 3);
    first = false;
  }
  return total;
}

std::int64_t NetworkPlan::trained() const {
  std::int64_t total = 0;
  for (const LayerPlan& layer : layers) total += layer.weights.count + layer.biases.count;
  return total;
}

Result<NetworkPlan> plan_network(const api::ModelConfig& model, const kernels::ImageShape& input,
                                 std::int64_t classes) {
  if (model.layers.empty()) return invalid("model.layers is empty; a model has at least one layer");
  NetworkPlan plan;
  plan.input = input;
  plan.classes = classes;
  Planner planner(model, plan);
  for (std::size_t i = 0; i < model.layers.size(); ++i) FETTLE_TRY(planner.take(i));
  FETTLE_TRY(planner.finish());
  const std::int64_t outputs = planner.output().size();
  if (outputs != classes) {
    return invalid("model.layers ends with " + std::to_string(outputs) +
                   " outputs, but the data have " + std::to_string(classes) +
                   " classes; end it with {type: linear, units: " + std::to_string(classes) + "}");
  }
  place_blocks(plan);
  if (plan.parameters == 0) {
    return invalid("model.layers has nothing to train; add a linear or conv layer");
  }
  if (plan.parameters > kMaxParameters) {
    return invalid("the model has " + std::to_string(plan.parameters) + " parameters; at most " +
                   std::to_string(kMaxParameters) + " are possible");
  }
  return plan;
}

}  // namespace fettle::trainer
