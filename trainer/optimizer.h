// Optimizer: turns summed gradients into new weights, with the backend's formulas (torch.optim's).
//
// Owns its state (momentum, moments) and what each step hands to the next: the number of updates
// and the loss scale. Where the state is sharded over workers it owns its shard, and updates the
// weights of that alone (optimizer_shards.h). Weight decay applies to the weights of linear and
// conv layers, never to biases and normalisation. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batching.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"

namespace fettle::trainer {

// Of all parameters, in host memory; empty where there is none.
struct OptimizerState {
  std::vector<float> first;
  std::vector<float> second;
};

// Which of the arrays state1 and state2 the optimiser has.
struct OptimizerStates {
  bool first = false;
  bool second = false;
};
OptimizerStates states_of(const api::TrainingConfig& config);

class Optimizer {
 public:
  // `backend` and `parameters` must outlive the optimiser. `predictions`: of a global batch.
  // `shard`: the parameters that it updates; none given: all. `given_up`: StepSettings'.
  // Errors: too little memory.
  static Result<std::unique_ptr<Optimizer>> create(
      const api::TrainingConfig& config, const NetworkPlan& plan, std::int64_t predictions,
      kernels::Backend& backend, Parameters& parameters, const std::optional<Range>& shard = {},
      const std::int32_t* given_up = nullptr);

  // What the workers' steps are told; before the gradients are all-reduced.
  void set_input(const kernels::StepInput& input);

  // Enqueues one update from gradients summed over samples: divided by their number and the scale
  // of the loss, clipped to clipNorm as torch.nn.utils.clip_grad_norm_ does, then the formula.
  // Nothing changes but the control if their norm is not finite. Can be recorded.
  void enqueue_update();

  // Enqueues a copy of the last step's result to the host. The next set_input may be enqueued
  // before it is taken.
  void enqueue_result() { results_->enqueue(device_control_.data()); }
  // How the oldest step ended whose result was not taken yet; waits for it.
  const kernels::StepControl& take_result();

  // As of the last take_result() or restore().
  const kernels::StepControl& control() const { return control_; }
  // Resumes from a checkpoint.
  void restore(std::int64_t updates, const kernels::LossScale& scale);
  // Whether whole states of these sizes are this optimiser's and network's.
  bool fits(std::size_t first, std::size_t second) const;
  // Takes its shard of a whole state that fits. Host memory.
  void restore_state(std::span<const float> first, std::span<const float> second);
  // All zeros, as it begins.
  OptimizerState fresh_state() const;

  // Memory of the state that this worker keeps.
  double state_mib() const {
    return static_cast<double>(state1.bytes() + state2.bytes()) / (1 << 20);
  }

  // In the backend's memory, for those who enqueue work.
  const kernels::StepControl* device_control() const { return device_control_.data(); }
  // Of dlogits: LossOptions::gradient_scale.
  const float* gradient_scale() const { return &device_control_.data()->dlogits_scale; }

  // Of the shard, as UpdateBuffers says; empty where there is none.
  kernels::DeviceArray<float> state1;
  kernels::DeviceArray<float> state2;

 private:
  Optimizer(const api::TrainingConfig& config, const kernels::StepSettings& settings,
            kernels::Backend& backend, Parameters& parameters, const Range& shard);
  void plan_update(const NetworkPlan& plan);
  kernels::UpdateBuffers part(const Range& range, bool decays);

  const api::TrainingConfig config_;
  const kernels::StepSettings settings_;
  kernels::Backend& backend_;
  Parameters& parameters_;
  const Range shard_;
  std::unique_ptr<kernels::UpdateOp> update_;  // null where the shard is empty
  kernels::DeviceArray<kernels::StepControl> device_control_;
  std::unique_ptr<kernels::Readback> results_;
  kernels::StepControl control_;
};

}  // namespace fettle::trainer
