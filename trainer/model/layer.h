// Layer: one stage of a network. Every kind of layer has its own file in this folder, which defines
// how it is planned and how it is made; layer_kinds.h lists the kinds.
//
// A layer owns its operation of the backend, never its parameters or activations. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"

namespace fettle::trainer {

// Called with a quantize layer's plan, its input, in the backend's memory, and how many numbers.
using InputObserver =
    std::function<void(const LayerPlan& layer, const float* x, std::int64_t count)>;

// The inputs of a pass through the network. The pointers are backend memory: a pass may be recorded
// and run again on later contents.
struct Pass {
  bool training = false;  // batch statistics and dropout, as opposed to evaluation
  std::int64_t samples = 0;
  // Keys of dropout; not read in evaluation.
  std::uint64_t seed = 0;
  const std::uint32_t* epoch = nullptr;
  const std::int64_t* indices = nullptr;  // of the samples in their set
  // The running statistics that batch normalisation updates, laid out as the network's; nullptr:
  // the network's own. A repeated forward pass must not update these again.
  float* statistics = nullptr;
  // Receives the inputs of quantize layers, which then pass them on as they are; nullptr: they
  // quantise.
  const InputObserver* observer = nullptr;
};

// Buffers that a forward pass reads and writes: y = layer(x).
struct ForwardBuffers {
  kernels::ConstBuffer x = nullptr;
  kernels::Buffer y = nullptr;
  // The other summand: of an add, of a norm that computes its input sum, and of a batch norm that
  // ends a block, for which y is the add's output.
  kernels::ConstBuffer shortcut = nullptr;
  kernels::Buffer sum = nullptr;  // of such a norm: receives the sum
  // Linear layer before a GELU: receives GELU(y); nullptr: not wanted.
  kernels::Buffer gelu = nullptr;
};

// Buffers of the last forward, with its x and y; nullptr if the layer does not read them
// (reads_of).
struct BackwardBuffers {
  kernels::ConstBuffer x = nullptr;
  kernels::ConstBuffer y = nullptr;  // batch norm that steps back with an add: the add's output
  // Linear layer after a GELU: x = GELU(before), and dx is the gradient by `before`.
  kernels::ConstBuffer before = nullptr;
  // Overwritten if a ReLU is fused, and by a batch norm that steps back with an add, which leaves
  // the gradient by the add's other summand; else unchanged.
  kernels::Buffer dy = nullptr;
  kernels::ConstBuffer other = nullptr;  // of that batch norm: added to dy first
  // The gradient by x (add: by the shortcut, because dy serves the other summand). nullptr: not
  // needed.
  kernels::Buffer dx = nullptr;
  bool adds = false;  // adds to the contents of dx; only if the layer's kind can (adds_gradients)
};

class Layer {
 public:
  virtual ~Layer() = default;
  // Called if the weights have changed since the last pass.
  virtual void weights_changed() {}
  virtual void forward(const Pass& pass, const ForwardBuffers& at) = 0;
  // Adds to the gradients of the parameters.
  virtual void backward(const Pass& pass, const BackwardBuffers& at) = 0;
};

// Arguments for making a layer.
struct LayerContext {
  kernels::Backend& backend;
  kernels::PlanOptions options;
  Parameters& parameters;  // outlives the layer
};

}  // namespace fettle::trainer
