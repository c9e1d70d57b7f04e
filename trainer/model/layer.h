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

class Layer {
 public:
  virtual ~Layer() = default;
  // The weights have changed since the last pass.
  virtual void weights_changed() {}
  virtual void forward(const Pass& pass, kernels::ConstBuffer x, kernels::Buffer y) = 0;
  // Of the last forward, with its x and y; nullptr what the layer's kind does not read
  // (BackwardReads). Adds to the gradients of the parameters; may overwrite dy. `dx` is nullptr
  // where nobody needs it.
  virtual void backward(const Pass& pass, kernels::ConstBuffer x, kernels::ConstBuffer y,
                        kernels::Buffer dy, kernels::Buffer dx) = 0;
};

// What a layer is made with.
struct LayerContext {
  kernels::Backend& backend;
  kernels::PlanOptions options;
  Parameters& parameters;  // outlives the layer
};

}  // namespace fettle::trainer
