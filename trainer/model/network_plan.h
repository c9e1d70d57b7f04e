// NetworkPlan: a model's layers with their shapes, and the places of their parameters. A Study's
// model is planned once, before any memory is allocated.
//
// Invariants: a layer reads an earlier layer's output (`source`), usually the previous one's; the
// last layer gives one number for each class. The entries residual and shortcut, which only mark
// where a block's parts begin, become such references; add is a layer that reads two outputs. All
// parameters lie in one array of floats: first those with weight decay (weights), then those
// without (biases, normalisation), each block on a 64-byte boundary. Running statistics lie in a
// second array. Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/data/sample_format.h"

namespace fettle::trainer {

// Floats `offset` to `offset + count - 1` of the parameter array (or of the statistics).
struct Block {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  // Initial values: uniform in [-bound, bound) if bound > 0, normal if deviation > 0, else `fill`.
  double bound = 0;
  double deviation = 0;
  float fill = 0;
  bool drawn() const { return bound > 0 || deviation > 0; }
  bool operator==(const Block&) const = default;
};

// As a source: the network's input.
inline constexpr std::int64_t kNetworkInput = -1;

struct LayerPlan {
  api::LayerType type = api::LayerType::kLinear;
  std::int64_t index = 0;                 // in model.layers
  std::int64_t stage = 0;                 // layers with weights and residual blocks up to here
  std::string name;                       // "model.layers[3] (maxPool)", for messages
  std::int64_t source = kNetworkInput;    // the layer that it reads: index into NetworkPlan::layers
  std::int64_t shortcut = kNetworkInput;  // add: the other summand
  kernels::ImageShape input;
  kernels::ImageShape output;
  bool tokens = false;  // its input is a sequence: each token is a pixel
  bool wide = false;    // its output is fp32 whatever the network's type (wide_residuals.h)
  bool relu = false;    // a ReLU that follows is fused into this layer
  bool bias = false;
  bool frozen = false;  // its parameters and statistics keep their values (model.freeze)
  std::int64_t kernel_height = 0;
  std::int64_t kernel_width = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  float rate = 0;               // dropout
  std::int64_t heads = 0;       // attention
  std::int64_t vocabulary = 0;  // embedding, head
  kernels::GeluForm gelu = kernels::GeluForm::kExact;
  // linear: the GELU between two linear layers that is fused into both: the first may write it, and
  // the second layer's gradient by its input passes through it.
  std::optional<kernels::GeluForm> gelu_after;
  std::optional<kernels::GeluForm> gelu_before;
  // batchNorm: computes the sum of the next layer, an add that ends its block. Its own output,
  // which no other layer reads, is never written.
  bool ends_block = false;
  bool end_relu = false;  // it also runs that add's fused ReLU
  Block weights;          // linear, conv: weights; norms: scale. count 0 = none
  Block biases;           // linear, conv: biases; norms: shift
  Block positions;        // embedding: vectors added to tokens by their position
  Block shared;           // head: the embedding's weights, counted there
  Block running_mean;     // batchNorm; of the statistics
  Block running_variance;
  Block range;  // quantize: the least and the largest input; of the statistics
  // linear, conv: training computes with weights on a grid of this many bits; 0: as they are
  std::int64_t weight_bits = 0;
  double multiply_adds = 0;  // of the forward pass, for one sample

  bool has_parameters() const { return weights.count > 0 || shared.count > 0; }
  bool is_trained() const { return has_parameters() && !frozen; }
  bool operator==(const LayerPlan&) const = default;
};

struct NetworkPlan {
  kernels::ImageShape input;
  std::int64_t classes = 0;
  bool tokens = false;     // the inputs are token ids
  std::string vocabulary;  // of text: maps tokens to ids
  std::vector<LayerPlan> layers;
  std::int64_t decayed = 0;     // weight decay applies to the first `decayed` parameters
  std::int64_t parameters = 0;  // all, with the gaps between blocks
  std::int64_t statistics = 0;
  std::int64_t frozen_statistics = 0;  // the first of them, which frozen layers have

  const LayerPlan& layer(std::int64_t i) const { return layers[static_cast<std::size_t>(i)]; }
  // The layer whose output the gradient by the input of `to` belongs to: its source, or the
  // source's source if the source is a GELU fused into `to`.
  std::int64_t gradient_target(const LayerPlan& to) const {
    return to.gelu_before ? layer(to.source).source : to.source;
  }
  // The first decayed parameter of a trained layer; `decayed` if only norms and biases are trained.
  // Frozen layers come first.
  std::int64_t first_trained() const;
  // Whether the network is trained on the grids of 8-bit integers (quantized_inputs.h).
  bool trains_quantized() const;
  // Labels of a sample: one, or one for each token.
  std::int64_t predictions() const { return tokens ? input.height : 1; }
  // Floating-point operations of one training step, for one sample: forward, gradients by the
  // inputs (except for the first trained layer) and by the weights (except for frozen layers).
  double training_flops() const;
  // Number of parameters, without the gaps and with frozen layers.
  std::int64_t trained() const;

  // Networks of equal plans compute the same from the same parameters. Narrower than an equal
  // layout (checkpoint/identity.h), which leaves out dropout and initial values.
  bool operator==(const NetworkPlan&) const = default;
};

// Errors name the layer, what was found and what was expected.
Result<NetworkPlan> plan_network(const api::ModelConfig& model, const SampleFormat& format);
// The same, with the residual streams and the quantised inputs that the training configuration asks
// for.
Result<NetworkPlan> plan_network(const api::TrainerConfig& config, const SampleFormat& format);
// The same for images.
Result<NetworkPlan> plan_network(const api::ModelConfig& model, const kernels::ImageShape& input,
                                 std::int64_t classes);

}  // namespace fettle::trainer
