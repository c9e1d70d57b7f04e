// GPT-2 (Radford et al. 2019) as a layer list: learned positions, blocks that normalise before
// attention and before the two linear layers, GELU in its tanh form, a final norm, and logits by
// the embedding's matrix. Initial values follow GPT-2: normal with deviation 0.02; projections onto
// the residual stream have 1 / sqrt(2 layers) times that. Dropout (model.dropout) stands after the
// embedding and before each sum, but not within attention.
// Pure functions; usable from any thread.
#pragma once

#include <vector>

#include "api/trainer/trainer_config.h"

namespace fettle::trainer {

std::vector<api::LayerConfig> gpt(const api::GptConfig& size);

// A copy of `model`, which must have gpt, with the equivalent layers instead.
api::ModelConfig with_layers(const api::ModelConfig& model);

}  // namespace fettle::trainer
