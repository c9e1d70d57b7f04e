// WeightGrid: the weights of a linear or conv layer as 8-bit integers, with a scale for each output
// channel; symmetric, so 0 is 0. A bias is a 32-bit integer whose scale is the product of its
// input's and its weights', as programs that compute with integers add it; that of a sequence,
// which is added behind the product, stays fp32.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

struct IntegerWeights {
  std::vector<float> scales;         // by output channel
  std::vector<std::int8_t> weights;  // in the trainer's order: [outputs, ...]
  std::vector<std::int32_t> biases;  // empty if they stay fp32
  std::vector<float> bias_scales;    // as many
};

// Whether the layer, which computes in 8 bits, has an integer bias.
bool has_integer_bias(const LayerPlan& layer);

// The layer computes in 8 bits (is_quantized()). `weights`, `statistics`: the plan's arrays.
// `bits`: 8 or 7. Weights that are on such a grid keep their integers.
IntegerWeights integer_weights(const NetworkPlan& plan, const LayerPlan& layer,
                               std::span<const float> weights, std::span<const float> statistics,
                               std::int64_t bits);

// Moves the weights of all layers that compute in 8 bits to their grids.
void round_to_integers(const NetworkPlan& plan, std::span<const float> statistics,
                       std::int64_t bits, std::vector<float>& weights);

}  // namespace fettle::trainer
