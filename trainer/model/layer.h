// Layer: one stage of a network. Every kind of layer has a file of its own in this folder, which
// says how it is planned and how it is made; layer_kinds.h lists them.
//
// A layer owns its operation of the backend, never its parameters or activations. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"

namespace fettle::trainer {

// What a pass through the network is about.
struct Pass {
  bool training = false;  // batch statistics and dropout, or what evaluation does
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::span<const std::int64_t> indices;  // of the samples in their set; keys of dropout
  std::int64_t samples() const { return std::ssize(indices); }
};

class Layer {
 public:
  virtual ~Layer() = default;
  // The weights have changed since the last pass.
  virtual void weights_changed() {}
  virtual void forward(const Pass& pass, kernels::ConstBuffer x, kernels::Buffer y) = 0;
  // Of the last forward, with its x and y. Adds to the gradients of the parameters; may overwrite
  // dy. `dx` is nullptr where nobody needs it.
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
