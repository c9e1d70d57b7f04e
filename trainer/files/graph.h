// Graph: a network as operations on PyTorch's axes, which formats that hold programs (torch, onnx)
// write one by one. Fused operations stand by themselves, and dropout is left out.
//
// Images are [samples, channels, height, width], lists [samples, numbers], sequences [samples,
// tokens, numbers]. Steps permute axes if the trainer's channels-last order
// matters.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

enum class GraphOp {
  kConv,
  kLinear,
  kBatchNorm,
  kLayerNorm,
  kRmsNorm,
  kRelu,
  kGelu,
  kMaxPool,
  kAveragePool,
  kGlobalPool,  // an image becomes a list
  kEmbedding,   // ids become a sequence
  kHead,
  kAttention,
  kAdd,
  kQuantize,       // a number on its grid of 8 bits
  kChannelsLast,   // [samples, channels, height, width] to [samples, height, width, channels]
  kChannelsFirst,  // and back
  kFlatten,        // to a list
  kImage,          // a list to an image of one pixel
};

struct GraphStep {
  GraphOp op = GraphOp::kRelu;
  std::int64_t layer = 0;            // of the plan: gives sizes and tensors
  bool on_image = false;             // the first input is an image
  std::vector<std::int64_t> inputs;  // values: 0 is the network's input, n the output of step n - 1
};

struct Graph {
  std::vector<GraphStep> steps;  // the last one gives the logits; may be empty
};

// The normalised input is an image, or a list if an image has one pixel, or token ids. Errors name
// a layer that has no such form: one that takes images but is given a text.
Result<Graph> graph_of(const NetworkPlan& plan);

}  // namespace fettle::trainer
