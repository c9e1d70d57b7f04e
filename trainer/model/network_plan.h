// NetworkPlan: a model's layers with their shapes, and where each one's parameters lie. What a
// Study writes becomes this once, before any memory is allocated.
//
// Invariants: a layer takes what an earlier one gives (`source`), mostly the one before it; the
// last one gives one number a class. The entries residual and shortcut, which only say where a
// block's parts begin, become such references; add is a layer that takes two. All parameters lie in
// one array of floats: first those that weight decay applies to (weights), then those that it does
// not (biases, normalisation), each block on a 64-byte boundary. Running statistics lie in a second
// array. Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/data/sample_format.h"

namespace fettle::trainer {

// Floats `offset` to `offset + count - 1` of the parameter array (or of the statistics).
struct Block {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  // How it starts: uniform in [-bound, bound) if bound > 0, normal if deviation > 0, else
  // everywhere `fill`.
  double bound = 0;
  double deviation = 0;
  float fill = 0;
  bool drawn() const { return bound > 0 || deviation > 0; }
};

// As a source: the network's input.
inline constexpr std::int64_t kNetworkInput = -1;

struct LayerPlan {
  api::LayerType type = api::LayerType::kLinear;
  std::int64_t index = 0;  // in model.layers
  std::string name;        // "model.layers[3] (maxPool)", for messages
  std::int64_t source =
      kNetworkInput;  // whose output it takes, as an index into NetworkPlan::layers
  std::int64_t shortcut = kNetworkInput;  // add: the other summand's
  kernels::ImageShape input;
  kernels::ImageShape output;
  bool tokens = false;  // its input is a sequence: one pixel a token
  bool wide = false;    // what it gives is fp32 whatever the network's type (wide_residuals.h)
  bool relu = false;    // a ReLU that follows is fused into this layer
  bool bias = false;
  std::int64_t kernel_height = 0;
  std::int64_t kernel_width = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  float rate = 0;               // dropout
  std::int64_t heads = 0;       // attention
  std::int64_t vocabulary = 0;  // embedding, head
  kernels::GeluForm gelu = kernels::GeluForm::kExact;
  // linear: of a GELU between two of them that is fused into both, where the first may write it and
  // the second's gradient by its input passes through it.
  std::optional<kernels::GeluForm> gelu_after;
  std::optional<kernels::GeluForm> gelu_before;
  // batchNorm: it works out the sum that the next layer, an add, ends its block with, and no
  // other layer takes what it gives, which is never written.
  bool ends_block = false;
  bool end_relu = false;  // and the ReLU that is fused into that add
  Block weights;          // linear, conv: weights; norms: scale. count 0 = none
  Block biases;           // linear, conv: biases; norms: shift
  Block positions;        // embedding: what is added to a token by its place
  Block shared;           // head: the embedding's weights, which are counted there
  Block running_mean;     // batchNorm; of the statistics
  Block running_variance;
  double multiply_adds = 0;  // of the forward pass, a sample

  bool has_parameters() const { return weights.count > 0 || shared.count > 0; }
};

struct NetworkPlan {
  kernels::ImageShape input;
  std::int64_t classes = 0;
  bool tokens = false;     // the input are token ids
  std::string vocabulary;  // of text: which token is which
  std::vector<LayerPlan> layers;
  std::int64_t decayed = 0;     // weight decay applies to the first `decayed` parameters
  std::int64_t parameters = 0;  // all of them, with the gaps between blocks
  std::int64_t statistics = 0;

  const LayerPlan& layer(std::int64_t i) const { return layers[static_cast<std::size_t>(i)]; }
  // Whose output the gradient by the input of `to` is for: its source, or what lies before that
  // where its source is a GELU that is fused into it.
  std::int64_t gradient_target(const LayerPlan& to) const {
    return to.gelu_before ? layer(to.source).source : to.source;
  }
  // Labels of a sample: one, or one a token.
  std::int64_t predictions() const { return tokens ? input.height : 1; }
  // Floating-point operations of one training step, a sample: forward, gradients by the inputs
  // (not of the first layer with parameters) and by the weights.
  double training_flops() const;
  // Parameters, without the gaps.
  std::int64_t trained() const;
};

// Errors name the layer, what was found and what was expected.
Result<NetworkPlan> plan_network(const api::ModelConfig& model, const SampleFormat& format);
// The same, with the residual streams that the training asks for.
Result<NetworkPlan> plan_network(const api::TrainerConfig& config, const SampleFormat& format);
// The same for images.
Result<NetworkPlan> plan_network(const api::ModelConfig& model, const kernels::ImageShape& input,
                                 std::int64_t classes);

}  // namespace fettle::trainer
