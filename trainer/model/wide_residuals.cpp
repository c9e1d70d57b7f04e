#include "trainer/model/wide_residuals.h"

#include <vector>

namespace fettle::trainer {
namespace {

using api::LayerType;

constexpr std::int64_t kNoLayer = -2;

// Builds the new plan layer by layer; translates indices of the old plan into indices of the new.
class Widener {
 public:
  explicit Widener(const NetworkPlan& old)
      : old_(old),
        wide_(old.layers.size(), false),
        given_(old.layers.size(), kNoLayer),
        cast_(old.layers.size(), kNoLayer) {}

  std::vector<LayerPlan> run() {
    for (std::size_t i = 0; i < old_.layers.size(); ++i) {
      LayerPlan layer = old_.layers[i];
      wide_[i] = layer.wide = is_wide(layer);
      const bool takes_wide = layer.wide && layer.type != LayerType::kEmbedding;
      layer.source = operand(layer.source, takes_wide);
      if (layer.type == LayerType::kAdd) layer.shortcut = operand(layer.shortcut, takes_wide);
      given_[i] = push(std::move(layer));
    }
    return std::move(layers_);
  }

 private:
  bool gives_wide(std::int64_t source) const {
    return source != kNetworkInput && wide_[static_cast<std::size_t>(source)];
  }

  bool is_wide(const LayerPlan& layer) const {
    switch (layer.type) {
      case LayerType::kEmbedding:
        return true;
      case LayerType::kAdd:
        return gives_wide(layer.source) || gives_wide(layer.shortcut);
      case LayerType::kDropout:
      case LayerType::kLayerNorm:
      case LayerType::kRmsNorm:
        return gives_wide(layer.source);
      default:
        return false;
    }
  }

  // The layer of the new plan that gives the output of layer `source` of the old plan, in fp32
  // (`wide`) or in 16 bits: the layer itself, or a cast of it, shared by all layers that need it.
  std::int64_t operand(std::int64_t source, bool wide) {
    if (source == kNetworkInput) return source;
    const auto i = static_cast<std::size_t>(source);
    if (wide_[i] == wide) return given_[i];
    if (cast_[i] != kNoLayer) return cast_[i];
    const LayerPlan& giver = old_.layers[i];
    LayerPlan cast;
    cast.type = LayerType::kCast;
    cast.index = giver.index;
    cast.name = giver.name + (wide ? " to fp32" : " to 16 bits");
    cast.source = given_[i];
    cast.input = cast.output = giver.output;
    cast.tokens = giver.tokens;
    cast.wide = wide;
    return cast_[i] = push(std::move(cast));
  }

  std::int64_t push(LayerPlan layer) {
    layers_.push_back(std::move(layer));
    return std::ssize(layers_) - 1;
  }

  const NetworkPlan& old_;
  std::vector<bool> wide_;           // by old layer: its output is fp32
  std::vector<std::int64_t> given_;  // by old layer: its new index
  std::vector<std::int64_t> cast_;   // by old layer: index of the cast of its output
  std::vector<LayerPlan> layers_;
};

}  // namespace

NetworkPlan with_fp32_residuals(const NetworkPlan& plan) {
  NetworkPlan widened = plan;
  widened.layers = Widener(plan).run();
  return widened;
}

}  // namespace fettle::trainer
