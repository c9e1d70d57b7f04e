// Layer: one stage of a network. Every kind of layer has a file of its own in this folder, which
// says how it is planned and how it is made; layer_kinds.h lists them.
//
// A layer owns its operation of the backend, never its parameters or activations. One thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"

namespace fettle::trainer {

// What a pass through the network is about. The pointers are memory of the backend, because a pass
// may be recorded and run again with what lies there by then.
struct Pass {
  bool training = false;  // batch statistics and dropout, or what evaluation does
  std::int64_t samples = 0;
  // Keys of dropout; not read in evaluation.
  std::uint64_t seed = 0;
  const std::uint32_t* epoch = nullptr;
  const std::int64_t* indices = nullptr;  // of the samples in their set
  // Where batch normalisation moves running statistics, laid out as the network's; nullptr: the
  // network's own. A forward pass that is repeated must not move these again.
  float* statistics = nullptr;
};

// What a forward pass reads and writes: y = layer(x).
struct ForwardBuffers {
  kernels::ConstBuffer x = nullptr;
  kernels::Buffer y = nullptr;
  // The other summand of an add, of a norm that works out the sum which it takes, and of a batch
  // norm that ends a block, where y is then the add's.
  kernels::ConstBuffer shortcut = nullptr;
  kernels::Buffer sum = nullptr;  // of the norm: where it goes
  // Of a linear layer before a GELU: where GELU(y) goes; nullptr: nowhere.
  kernels::Buffer gelu = nullptr;
};

// Of the last forward, with its x and y; nullptr what the layer does not read (reads_of).
struct BackwardBuffers {
  kernels::ConstBuffer x = nullptr;
  kernels::ConstBuffer y = nullptr;  // of a batch norm that steps back with an add: the add's
  // Of a linear layer after a GELU: x = GELU(before), and dx is the gradient by `before`.
  kernels::ConstBuffer before = nullptr;
  // Overwritten where a ReLU is fused, and only there; and by a batch norm that steps back with an
  // add, which leaves the gradient by the add's summands.
  kernels::Buffer dy = nullptr;
  kernels::ConstBuffer other = nullptr;  // of that batch norm: what it adds to dy first
  // The gradient by x (of an add, whose other one is dy: by the shortcut). nullptr: not needed.
  kernels::Buffer dx = nullptr;
  bool adds = false;  // to what dx holds; only where the layer's kind can (adds_gradients)
};

class Layer {
 public:
  virtual ~Layer() = default;
  // The weights have changed since the last pass.
  virtual void weights_changed() {}
  virtual void forward(const Pass& pass, const ForwardBuffers& at) = 0;
  // Adds to the gradients of the parameters.
  virtual void backward(const Pass& pass, const BackwardBuffers& at) = 0;
};

// What a layer is made with.
struct LayerContext {
  kernels::Backend& backend;
  kernels::PlanOptions options;
  Parameters& parameters;  // outlives the layer
};

}  // namespace fettle::trainer
