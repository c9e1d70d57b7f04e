#include "trainer/quantize/weight_grid.h"

#include <algorithm>
#include <cmath>

#include "kernels/quantize/formulas.h"
#include "trainer/quantize/quantized_plan.h"

namespace fettle::trainer {
namespace {

// A bias is at most this many steps of its scale: far from the end of 32 bits, because the sum of
// the products is added to it.
constexpr float kMostBias = 1 << 30U;

std::span<const float> part(std::span<const float> all, const Block& block) {
  return all.subspan(static_cast<std::size_t>(block.offset), static_cast<std::size_t>(block.count));
}

// The smallest scale that holds the row within `limit` steps. A large bias on small weights makes
// it larger.
float scale_of(std::span<const float> row, float limit, float bias, float input_scale) {
  float most = 0;
  for (const float weight : row) most = std::max(most, std::abs(weight));
  const float scale = std::max(most / limit, std::abs(bias) / (input_scale * kMostBias));
  return scale > 0 ? scale : 1;
}

}  // namespace

bool has_integer_bias(const LayerPlan& layer) {
  const bool of_sequence = layer.type == api::LayerType::kLinear && layer.tokens;
  return layer.bias && !of_sequence;
}

IntegerWeights integer_weights(const NetworkPlan& plan, const LayerPlan& layer,
                               std::span<const float> weights, std::span<const float> statistics,
                               std::int64_t bits) {
  const std::span<const float> range = part(statistics, plan.layer(layer.source).range);
  const float input_scale = kernels::byte_grid(range[0], range[1]).scale;
  const auto limit = static_cast<float>((1 << (bits - 1)) - 1);
  const std::span<const float> rows = part(weights, layer.weights);
  const bool rounds_bias = has_integer_bias(layer);
  const auto outputs = static_cast<std::size_t>(layer.output.channels);
  const std::size_t width = rows.size() / outputs;
  IntegerWeights made;
  made.weights.reserve(rows.size());
  for (std::size_t output = 0; output < outputs; ++output) {
    const std::span<const float> row = rows.subspan(output * width, width);
    const float bias = rounds_bias ? part(weights, layer.biases)[output] : 0;
    const float scale = scale_of(row, limit, bias, input_scale);
    made.scales.push_back(scale);
    for (const float weight : row) {
      made.weights.push_back(
          static_cast<std::int8_t>(std::clamp(std::rint(weight / scale), -limit, limit)));
    }
    if (!rounds_bias) continue;
    made.bias_scales.push_back(input_scale * scale);
    made.biases.push_back(static_cast<std::int32_t>(std::rint(bias / made.bias_scales.back())));
  }
  return made;
}

void round_to_integers(const NetworkPlan& plan, std::span<const float> statistics,
                       std::int64_t bits, std::vector<float>& weights) {
  for (const LayerPlan& layer : plan.layers) {
    if (!is_quantized(plan, layer)) continue;
    const IntegerWeights integers = integer_weights(plan, layer, weights, statistics, bits);
    float* const rows = weights.data() + layer.weights.offset;
    const std::size_t width = integers.weights.size() / integers.scales.size();
    for (std::size_t i = 0; i < integers.weights.size(); ++i) {
      rows[i] = static_cast<float>(integers.weights[i]) * integers.scales[i / width];
    }
    float* const biases = weights.data() + layer.biases.offset;
    for (std::size_t i = 0; i < integers.biases.size(); ++i) {
      biases[i] = static_cast<float>(integers.biases[i]) * integers.bias_scales[i];
    }
  }
}

}  // namespace fettle::trainer
