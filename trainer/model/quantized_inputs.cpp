#include "trainer/model/quantized_inputs.h"

#include <utility>
#include <vector>

namespace fettle::trainer {
namespace {

using api::LayerType;

constexpr std::int64_t kNone = -2;
constexpr std::int64_t kFloatsPerLine = 16;  // blocks begin on cache lines, as all do

// Builds the new plan layer by layer; translates indices of the old plan into indices of the new.
class Quantizer {
 public:
  Quantizer(const NetworkPlan& old, std::int64_t weight_bits)
      : old_(old),
        weight_bits_(weight_bits),
        made_(old),
        given_(old.layers.size()),
        grid_(old.layers.size(), kNone) {
    made_.layers.clear();
  }

  NetworkPlan run() {
    for (std::size_t i = 0; i < old_.layers.size(); ++i) {
      LayerPlan layer = old_.layers[i];
      // Between these layers there may be a quantize layer now.
      layer.gelu_after.reset();
      layer.gelu_before.reset();
      layer.ends_block = layer.end_relu = false;
      // The residual stream of a text holds outliers, and nothing but norms reads it.
      const bool adds = layer.type == LayerType::kAdd;
      const bool quantizes = computes_in_bytes(layer.type) || (adds && !old_.tokens);
      if (computes_in_bytes(layer.type)) layer.weight_bits = weight_bits_;
      const std::int64_t source = layer.source;
      layer.source = operand(source, quantizes, layer.tokens);
      if (adds) layer.shortcut = operand(layer.shortcut, quantizes, layer.tokens);
      given_[i] = push(std::move(layer));
    }
    return std::move(made_);
  }

 private:
  // The layer of the new plan that gives the output of layer `source` of the old plan, as it is or
  // quantised.
  std::int64_t operand(std::int64_t source, bool quantizes, bool tokens) {
    const bool of_input = source == kNetworkInput;
    const auto i = static_cast<std::size_t>(source);
    const std::int64_t plain = of_input ? kNetworkInput : given_[i];
    if (!quantizes) return plain;
    std::int64_t& grid = of_input ? grid_of_input_ : grid_[i];
    if (grid == kNone) grid = push(grid_of(of_input ? nullptr : &old_.layers[i], plain, tokens));
    return grid;
  }

  LayerPlan grid_of(const LayerPlan* giver, std::int64_t source, bool tokens) {
    LayerPlan grid;
    grid.type = LayerType::kQuantize;
    grid.index = giver == nullptr ? 0 : giver->index;
    grid.name = (giver == nullptr ? "the input" : giver->name) + " in 8 bits";
    grid.source = source;
    grid.input = grid.output = giver == nullptr ? old_.input : giver->output;
    grid.tokens = tokens;
    grid.range = {.offset = made_.statistics, .count = 2};
    made_.statistics += kFloatsPerLine;
    return grid;
  }

  std::int64_t push(LayerPlan layer) {
    made_.layers.push_back(std::move(layer));
    return std::ssize(made_.layers) - 1;
  }

  const NetworkPlan& old_;
  const std::int64_t weight_bits_;
  NetworkPlan made_;
  std::vector<std::int64_t> given_;  // by old layer: its new index
  std::vector<std::int64_t> grid_;   // by old layer: index of its output's quantize layer
  std::int64_t grid_of_input_ = kNone;
};

}  // namespace

bool computes_in_bytes(LayerType type) {
  return type == LayerType::kLinear || type == LayerType::kConv;
}

NetworkPlan with_quantized_inputs(const NetworkPlan& plan, std::int64_t weight_bits) {
  return Quantizer(plan, weight_bits).run();
}

}  // namespace fettle::trainer
