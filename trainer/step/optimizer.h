// Optimizer: turns summed gradients into new weights, with the backend's formulas (torch.optim's).
//
// Owns its state (momentum, moments) and the values carried from step to step: the number of
// updates and the loss scale. If the state is sharded over workers, it owns and updates its shard
// alone (optimizer_shards.h). Weight decay and the rates of layers are parameter_groups.h's. One
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batching.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"
#include "trainer/step/parameter_groups.h"

namespace fettle::trainer {

// State for all parameters, in host memory; an array that the optimiser lacks is empty.
struct OptimizerState {
  std::vector<float> first;
  std::vector<float> second;
};

// Whether the optimiser has the arrays state1 and state2.
struct OptimizerStates {
  bool first = false;
  bool second = false;
};
OptimizerStates states_of(const api::TrainingConfig& config);

class Optimizer {
 public:
  // `backend` and `parameters` must outlive the optimiser. `predictions`: of a global batch.
  // `shard`: the parameters to update; nullopt: all. `given_up`: as in StepSettings. Errors: too
  // little memory.
  static Result<std::unique_ptr<Optimizer>> create(
      const api::TrainingConfig& config, const NetworkPlan& plan, std::int64_t predictions,
      kernels::Backend& backend, Parameters& parameters, const std::optional<Range>& shard = {},
      const std::int32_t* given_up = nullptr);

  // Sets the step's input; called before the gradients are all-reduced.
  void set_input(const kernels::StepInput& input);

  // Enqueues one update from gradients summed over samples: divides them by their number and the
  // scale of the loss, clips them to clipNorm as torch.nn.utils.clip_grad_norm_ does, then applies
  // the formula. If their norm is not finite, only the control changes. Can be recorded.
  void enqueue_update();

  // Enqueues a copy of the last step's result to the host. The next set_input may be enqueued
  // before it is taken.
  void enqueue_result() { results_->enqueue(device_control_.data()); }
  // Waits for the oldest result that was not taken yet, and returns it.
  const kernels::StepControl& take_result();

  // As of the last take_result() or restore().
  const kernels::StepControl& control() const { return control_; }
  // Resumes from a checkpoint.
  void restore(std::int64_t updates, const kernels::LossScale& scale);
  // Whether whole states of these sizes fit this optimiser and its network.
  bool fits(std::size_t first, std::size_t second) const;
  // Copies its shard out of a whole state that fits, in host memory.
  void restore_state(std::span<const float> first, std::span<const float> second);
  // The initial state: all zeros.
  OptimizerState fresh_state() const;

  // With training.prune: the weights that stay 0 from now on, as UpdateBuffers::mask of the first
  // `decayed` parameters.
  void set_mask(std::span<const std::uint16_t> mask) { mask_.upload(mask); }

  // Memory of the state that this worker keeps.
  double state_mib() const {
    return static_cast<double>(state1.bytes() + state2.bytes()) / (1 << 20);
  }

  // In the backend's memory, for enqueued work.
  const kernels::StepControl* device_control() const { return device_control_.data(); }
  // The scale of dlogits: LossOptions::gradient_scale.
  const float* gradient_scale() const { return &device_control_.data()->dlogits_scale; }

  // State of the shard, as in UpdateBuffers; an array that the optimiser lacks is empty.
  kernels::DeviceArray<float> state1;
  kernels::DeviceArray<float> state2;

 private:
  Optimizer(const api::TrainingConfig& config, const kernels::StepSettings& settings,
            kernels::Backend& backend, Parameters& parameters, const Range& shard);
  void plan_update(const NetworkPlan& plan);
  kernels::UpdateBuffers part(const Range& range, const ParameterGroup& group);

  const api::TrainingConfig config_;
  const kernels::StepSettings settings_;
  kernels::Backend& backend_;
  Parameters& parameters_;
  const Range shard_;
  std::unique_ptr<kernels::UpdateOp> update_;  // null if the shard is empty
  kernels::DeviceArray<std::uint16_t> mask_;   // empty: no weights are pruned
  kernels::DeviceArray<kernels::StepControl> device_control_;
  std::unique_ptr<kernels::Readback> results_;
  kernels::StepControl control_;
};

}  // namespace fettle::trainer
