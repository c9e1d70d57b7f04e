#include "trainer/model/network_plan.h"

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
  kernels::ImageShape shape = input;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const api::LayerConfig& config = model.layers[i];
    if (config.type == api::LayerType::kFlatten) {
      shape = {1, 1, shape.size()};  // the memory stays as it is
      continue;
    }
    if (config.type == api::LayerType::kRelu && !plan.layers.empty() &&
        can_fuse_relu(plan.layers.back())) {
      plan.layers.back().relu = true;
      continue;
    }
    const bool before_norm =
        i + 1 < model.layers.size() && model.layers[i + 1].type == api::LayerType::kBatchNorm;
    LayerPlan layer;
    layer.type = config.type;
    layer.index = static_cast<std::int64_t>(i);
    layer.name = layer_name(model, i);
    layer.input = shape;
    layer.output = shape;
    FETTLE_TRY(kind_of(config.type).plan(model, config, before_norm, layer));
    FETTLE_TRY(check_size(layer));
    shape = layer.output;
    plan.layers.push_back(std::move(layer));
  }
  if (shape.size() != classes) {
    return invalid("model.layers ends with " + std::to_string(shape.size()) +
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
