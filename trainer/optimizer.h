// Optimizer: turns summed gradients into new weights, with the backend's formulas (torch.optim's).
//
// Owns its state (momentum, moments) and the number of updates made. Weight decay applies to the
// weights of linear and conv layers, never to biases and normalisation. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/trainer_config.h"
#include "kernels/aligned.h"
#include "kernels/backend.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"

namespace fettle::trainer {

// Which of the arrays state1 and state2 the optimiser has.
struct OptimizerStates {
  bool first = false;
  bool second = false;
};
OptimizerStates states_of(const api::TrainingConfig& config);

class Optimizer {
 public:
  // `backend` must outlive the optimiser.
  Optimizer(const api::TrainingConfig& config, const NetworkPlan& plan, kernels::Backend& backend);

  // One update from gradients summed over samples: divided by `divisor` (their number, times the
  // scale of the loss), clipped to clipNorm as torch.nn.utils.clip_grad_norm_ does, then the
  // formula. Sets the gradients to zero.
  // False, and nothing changed, if their norm is not finite.
  bool update(Parameters& parameters, double divisor, double learning_rate);

  std::int64_t updates = 0;             // made so far
  kernels::AlignedArray<float> state1;  // as UpdateBuffers says; empty where there is none
  kernels::AlignedArray<float> state2;

 private:
  void update_all(Parameters& parameters, const kernels::UpdateSettings& settings);
  void update_part(Parameters& parameters, std::int64_t begin, std::int64_t end,
                   const kernels::UpdateSettings& settings, bool rounds);

  const api::TrainingConfig config_;
  const std::int64_t decayed_;
  std::vector<Block> tensors_;  // for the optimiser that looks at each by itself
  kernels::Backend& backend_;
};

}  // namespace fettle::trainer
