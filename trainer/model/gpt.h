// GPT-2 (Radford et al. 2019) as a layer list: learned positions, blocks that normalise before
// attention and before the two linear layers, GELU in its tanh form, a last norm, and logits by the
// embedding's matrix. Starts as GPT-2: normal with deviation 0.02; what is added to the residual
// stream 1 / sqrt(2 layers) times that. Dropout (model.dropout) stands after the embedding and
// before each sum; there is none within attention.
// Pure functions; usable from any thread.
#pragma once

#include <vector>

#include "api/trainer_config.h"

namespace fettle::trainer {

std::vector<api::LayerConfig> gpt(const api::GptConfig& size);

// `model`, which has gpt, with layers in its place.
api::ModelConfig with_layers(const api::ModelConfig& model);

}  // namespace fettle::trainer
