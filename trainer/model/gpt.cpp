#include "trainer/model/gpt.h"

#include <cmath>

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {

namespace {

using api::LayerType;

constexpr double kDeviation = 0.02;
constexpr std::int64_t kWider = 4;  // hidden width of a block, in widths
// Entries of the list below.
constexpr std::int64_t kLayersOfEmbedding = 2;
constexpr std::int64_t kLayersOfBlock = 14;

api::LayerConfig starting_linear(std::int64_t units, double deviation) {
  api::LayerConfig layer = linear(units);
  layer.deviation = deviation;
  return layer;
}

api::LayerConfig tanh_gelu() {
  api::LayerConfig layer = simple(LayerType::kGelu);
  layer.approximate = api::GeluApproximation::kTanh;
  return layer;
}

}  // namespace

std::vector<api::LayerConfig> gpt(const api::GptConfig& size) {
  // GPT-2: the 2 x layers projections that are added to the residual stream start smaller, so that
  // the stream does not grow with the depth.
  const double residual = kDeviation / std::sqrt(2 * static_cast<double>(size.layers));
  std::vector<api::LayerConfig> layers = {embedding(size.width), simple(LayerType::kDropout)};
  const auto add = [&layers](const std::vector<api::LayerConfig>& more) {
    layers.insert(layers.end(), more.begin(), more.end());
  };
  for (std::int64_t i = 0; i < size.layers; ++i) {
    add({simple(LayerType::kResidual), simple(LayerType::kLayerNorm),
         starting_linear(3 * size.width, kDeviation), attention(size.heads),
         starting_linear(size.width, residual), simple(LayerType::kDropout),
         simple(LayerType::kAdd)});
    add({simple(LayerType::kResidual), simple(LayerType::kLayerNorm),
         starting_linear(kWider * size.width, kDeviation), tanh_gelu(),
         starting_linear(size.width, residual), simple(LayerType::kDropout),
         simple(LayerType::kAdd)});
  }
  add({simple(LayerType::kLayerNorm), simple(LayerType::kHead)});
  return layers;
}

api::ModelConfig with_layers(const api::ModelConfig& model) {
  api::ModelConfig expanded = model;
  expanded.layers = gpt(*model.gpt);
  expanded.gpt.reset();
  if (const std::int64_t blocks = model.freeze.value_or(0); blocks > 0) {
    expanded.freeze = kLayersOfEmbedding + kLayersOfBlock * blocks;
  }
  return expanded;
}

}  // namespace fettle::trainer
