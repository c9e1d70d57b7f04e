// Network: the layers of a plan with their parameters and activations, ready to run on a backend.
//
// All memory is the backend's, allocated at creation for at most `max_samples` samples at once: the
// parameters, and one block for all outputs and gradients, laid out by an ActivationPlan. Passes
// only enqueue work on the backend, so that they can be captured. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/model/activation_plan.h"
#include "trainer/model/layer.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"
#include "trainer/trace/trace.h"

namespace fettle::trainer {

// The implementation that does a pass of a layer.
struct LayerImplementation {
  std::string layer;
  kernels::Implementation pass;
};

class Network {
 public:
  // `backend` must outlive the network. `recompute`: layers run forward twice if that saves memory;
  // it changes no bit of any result. `shard`: the parameters that this worker updates, if several
  // share the optimiser. Errors: a layer that the backend cannot run, by name; too little memory.
  static Result<std::unique_ptr<Network>> create(const NetworkPlan& plan, kernels::Backend& backend,
                                                 const kernels::PlanOptions& options,
                                                 std::uint64_t seed, bool recompute = false,
                                                 const std::optional<Range>& shard = {});
  // A network that only evaluates: without gradients, and with fp32 masters only of what operations
  // read in fp32. Neither backward() nor restart() may be called. Errors: as create().
  static Result<std::unique_ptr<Network>> create_forward_only(const NetworkPlan& plan,
                                                              kernels::Backend& backend,
                                                              kernels::PlanOptions options,
                                                              std::span<const float> weights,
                                                              std::span<const float> statistics);
  // Workspace of such a network's operations, beside its parameters and activations. Allocates
  // nothing if the backend has memory of its own.
  static Result<kernels::Workspace> workspace(const NetworkPlan& plan, kernels::Backend& backend,
                                              const kernels::PlanOptions& options);

  // Restores the state after create(), keeping the operations and their plans: initial values, zero
  // gradients. Errors: too little memory.
  Status restart(std::uint64_t seed, const std::optional<Range>& shard);

  const NetworkPlan& plan() const { return plan_; }
  Parameters& parameters() { return parameters_; }
  const ActivationPlan& activations() const { return activations_; }
  std::int64_t max_samples() const { return options_.max_samples; }
  const kernels::PlanOptions& options() const { return options_; }
  // Implementations of layers for which the backend has more than one, in the order of the layers.
  const std::vector<LayerImplementation>& implementations() const { return implementations_; }
  // Receives each layer's times; nullptr: they are not taken. Must outlive the passes.
  void set_trace(Trace* trace) { trace_ = trace; }

  // Whether quantize layers round, as they do after creation, and layers trained on grids use them.
  void set_quantizes(bool quantizes);
  bool quantizes() const { return parameters_.quantizes; }

  // Call after parameters().weights (and its 16-bit copies) changed, before the next forward.
  void weights_changed();

  // `images`: [samples, height, width, channels] in the plan's type; for text the tokens,
  // std::int32_t, [samples, length]. Returns the logits, [samples, classes] (for text [samples,
  // length, classes]), valid until the next forward or backward.
  kernels::ConstBuffer forward(const Pass& pass, kernels::ConstBuffer images);

  // Must hold the gradient of the loss by the logits before backward.
  kernels::Buffer logits_gradient() { return at(activations_.logits_gradient); }

  // Runs the backward pass of the last forward, with the same images: adds to
  // parameters().gradients. Overwrites logits_gradient() and the logits. Calls `layer_done` for
  // each layer, from the last to the first, once this pass no longer changes its gradients; for an
  // add only if it steps back by itself.
  using LayerDone = std::function<void(std::int64_t layer)>;
  void backward(const Pass& pass, kernels::ConstBuffer images, const LayerDone& layer_done = {});

 private:
  Network(const NetworkPlan& plan, kernels::Backend& backend, const kernels::PlanOptions& options,
          Parameters parameters, ActivationPlan activations);
  Status make_layers_and_memory();
  kernels::DataType type_of(const LayerPlan& layer) const;  // of its output
  const std::string& name_of(const ActivationStep& step) const {
    return plan_.layers[static_cast<std::size_t>(step.layer)].name;
  }
  void run(const Pass& pass, const ActivationStep& step, kernels::ConstBuffer images);
  void step_back(const Pass& pass, const ActivationStep& step, kernels::ConstBuffer images);
  kernels::Buffer at(std::int64_t place);
  kernels::ConstBuffer given(std::int64_t place, kernels::ConstBuffer images);

  const NetworkPlan plan_;
  const ActivationPlan activations_;
  kernels::Backend& backend_;
  const kernels::PlanOptions options_;
  Parameters parameters_;
  Trace* trace_ = nullptr;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<LayerImplementation> implementations_;
  kernels::DeviceArray<std::uint8_t> memory_;  // laid out by activations_
  // Running statistics as changed by repeated layers; never read.
  kernels::DeviceArray<float> spare_statistics_;
};

// While it lives, a network that is trained on grids computes with its weights as they are.
class WithoutGrids {
 public:
  explicit WithoutGrids(Network& network)
      : network_(network), leaves_(network.plan().trains_quantized() && network.quantizes()) {
    if (leaves_) network_.set_quantizes(false);
  }
  ~WithoutGrids() {
    if (leaves_) network_.set_quantizes(true);
  }
  WithoutGrids(const WithoutGrids&) = delete;
  WithoutGrids& operator=(const WithoutGrids&) = delete;

 private:
  Network& network_;
  const bool leaves_;
};

}  // namespace fettle::trainer
