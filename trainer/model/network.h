// Network: the layers of a plan with their parameters and activations, ready to run on a backend.
//
// All memory is the backend's, allocated at creation for at most `max_samples` samples at once.
// Passes only give orders to the backend, so that they can be recorded. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/model/backward_plan.h"
#include "trainer/model/layer.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"
#include "trainer/trace.h"

namespace fettle::trainer {

class Network {
 public:
  // `backend` must outlive the network. Errors: a layer that the backend cannot run, by name; too
  // little memory.
  static Result<std::unique_ptr<Network>> create(const NetworkPlan& plan, kernels::Backend& backend,
                                                 const kernels::PlanOptions& options,
                                                 std::uint64_t seed);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const NetworkPlan& plan() const { return plan_; }
  Parameters& parameters() { return parameters_; }
  std::int64_t max_samples() const { return options_.max_samples; }
  // Where each layer's times go; nullptr: nowhere. Must outlive the passes.
  void set_trace(Trace* trace) { trace_ = trace; }

  // Call after parameters().weights (and its 16-bit copies) changed, before the next forward.
  void weights_changed();

  // `images`: [samples, height, width, channels] in the plan's type; of text the tokens,
  // std::int32_t, [samples, length]. Returns the logits, [samples, classes] (of text [samples,
  // length, classes]), valid until the next forward.
  kernels::ConstBuffer forward(const Pass& pass, kernels::ConstBuffer images);

  // Where the gradient of the loss by the logits goes, before backward.
  kernels::Buffer logits_gradient() { return gradients_[0].data(); }

  // Of the last forward, with the same images: adds to parameters().gradients. Overwrites
  // logits_gradient().
  void backward(const Pass& pass, kernels::ConstBuffer images);

 private:
  Network(const NetworkPlan& plan, kernels::Backend& backend, const kernels::PlanOptions& options,
          Parameters parameters);
  Status allocate();
  Status make_layers();
  // What a layer gave in the last forward.
  kernels::ConstBuffer output_of(std::int64_t layer, kernels::ConstBuffer images) const;
  void step_back(const Pass& pass, const BackwardStep& step, kernels::ConstBuffer images);
  void step_back_add(const Pass& pass, const BackwardStep& step);
  kernels::Buffer slot(std::int64_t number);

  const NetworkPlan plan_;
  const BackwardPlan backward_plan_;
  kernels::Backend& backend_;
  const kernels::PlanOptions options_;
  Parameters parameters_;
  Trace* trace_ = nullptr;
  std::vector<std::unique_ptr<Layer>> layers_;                 // nullptr: add
  std::vector<kernels::DeviceArray<std::uint8_t>> outputs_;    // of each layer
  std::vector<kernels::DeviceArray<std::uint8_t>> gradients_;  // the slots of backward_plan_
};

}  // namespace fettle::trainer
