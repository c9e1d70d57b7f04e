// NamedWeights: the tensors of a network as PyTorch names and shapes them, and where their values
// lie in the trainer's arrays.
//
// Names count the entries of model.layers: "layers.3.weight", "layers.4.running_mean"; an embedding
// has "layers.0.token.weight" and "layers.0.position.weight", and a head shares the former. The
// trainer keeps the channels of a pixel together, PyTorch the pixels of a channel: so convolutions
// and linear layers behind a flattened image are reordered.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

struct NamedWeight {
  std::string name;
  std::vector<std::int64_t> shape;  // in the file
  Block block;                      // of the parameters, or of the statistics
  bool of_statistics = false;
  // Each row of the trainer's is [pixels, channels], and in the file [channels, pixels]. 1: no
  // difference.
  std::int64_t pixels = 1;
  std::int64_t channels = 1;
};

// The name of a tensor of the layer: "layers.3.weight".
std::string tensor_name(const LayerPlan& layer, const char* tensor);

// All tensors, in the order of the layers.
std::vector<NamedWeight> named_weights(const NetworkPlan& plan);

// The values of the tensor in the order of the file; `array`: all parameters, or all statistics.
std::vector<float> values_of(const NamedWeight& weight, std::span<const float> array);

// The reverse: writes the values of a file to their place in the array.
void place_values(const NamedWeight& weight, std::span<const float> values, std::span<float> array);

// How an image becomes the plain list that a layer takes.
enum class Flattening {
  kNone,           // it is none, or the layer takes images
  kChannelsFirst,  // as torch.nn.Flatten: only linear layers read the list, whose columns follow it
  kChannelsLast,   // as the trainer: other layers depend on the order
};
// Return it for the layer's source, and for an add's shortcut.
Flattening flattening_of_source(const NetworkPlan& plan, const LayerPlan& layer);
Flattening flattening_of_shortcut(const NetworkPlan& plan, const LayerPlan& add);

}  // namespace fettle::trainer
