// Network: the layers of a plan with their parameters and activations, ready to run on a backend.
//
// All memory is the backend's, allocated at creation for at most `max_samples` samples at once: the
// parameters, and one block for all that passes write, in which an ActivationPlan says what lies
// where. Passes only enqueue work on the backend, so that they can be captured. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

// Which implementation does a pass of a layer.
struct LayerImplementation {
  std::string layer;
  kernels::Implementation pass;
};

class Network {
 public:
  // `backend` must outlive the network. `recompute`: layers run forward twice where that saves
  // memory; it changes no bit of any result. `shard`: the parameters that this worker updates,
  // where several share the optimiser. Errors: a layer that the backend cannot run, by name; too
  // little memory.
  static Result<std::unique_ptr<Network>> create(const NetworkPlan& plan, kernels::Backend& backend,
                                                 const kernels::PlanOptions& options,
                                                 std::uint64_t seed, bool recompute = false,
                                                 const std::optional<Range>& shard = {});
  // What the operations of such a network need beside parameters and activations. Allocates nothing
  // where the backend has memory of its own.
  static Result<kernels::Workspace> workspace(const NetworkPlan& plan, kernels::Backend& backend,
                                              const kernels::PlanOptions& options);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // As create() left it, with the same operations and what they have planned: initial values, no
  // gradients. Errors: too little memory.
  Status restart(std::uint64_t seed, const std::optional<Range>& shard);

  const NetworkPlan& plan() const { return plan_; }
  Parameters& parameters() { return parameters_; }
  const ActivationPlan& activations() const { return activations_; }
  std::int64_t max_samples() const { return options_.max_samples; }
  const kernels::PlanOptions& options() const { return options_; }
  // Of the layers that a backend has more than one implementation for, in their order.
  const std::vector<LayerImplementation>& implementations() const { return implementations_; }
  // Where each layer's times go; nullptr: nowhere. Must outlive the passes.
  void set_trace(Trace* trace) { trace_ = trace; }

  // Call after parameters().weights (and its 16-bit copies) changed, before the next forward.
  void weights_changed();

  // `images`: [samples, height, width, channels] in the plan's type; of text the tokens,
  // std::int32_t, [samples, length]. Returns the logits, [samples, classes] (of text [samples,
  // length, classes]), valid until the next forward or backward.
  kernels::ConstBuffer forward(const Pass& pass, kernels::ConstBuffer images);

  // Where the gradient of the loss by the logits goes, before backward.
  kernels::Buffer logits_gradient() { return at(activations_.logits_gradient); }

  // Of the last forward, with the same images: adds to parameters().gradients. Overwrites
  // logits_gradient() and the logits. `layer_done` is told, from the last layer to the first, whose
  // gradients will not change any more in this pass; of an add only where it steps back by itself.
  using LayerDone = std::function<void(std::int64_t layer)>;
  void backward(const Pass& pass, kernels::ConstBuffer images, const LayerDone& layer_done = {});

 private:
  Network(const NetworkPlan& plan, kernels::Backend& backend, const kernels::PlanOptions& options,
          Parameters parameters, bool recompute);
  Status allocate();
  kernels::DataType type_of(const LayerPlan& layer) const;  // of what it gives
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
  kernels::DeviceArray<std::uint8_t> memory_;  // of activations_
  // What layers that run again make of the running statistics; never read.
  kernels::DeviceArray<float> spare_statistics_;
};

}  // namespace fettle::trainer
