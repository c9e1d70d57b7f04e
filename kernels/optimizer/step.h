// The end of an optimiser step: whether it is applied, how its gradients are scaled, and how fp16's
// loss scale changes. Pure functions of numbers that the backend holds, so that a GPU decides
// without the host, with the same bits as a CPU. All workers decide from the same sums and so
// alike. Usable from any thread and from device code.
//
// If a worker is lost, the others' pending sums are abandoned, and a step without its sums is
// undone. A step is applied if all workers' losses and the norm of the summed gradients are finite.
// The dynamic loss scale is torch.amp.GradScaler's: a step that overflows is skipped and halves the
// scale; after kGrowthInterval good steps in a row it doubles. At the smallest scale another try
// gains nothing: the training diverges, as fp32 and bf16 do at once (apply and skipped are both 0).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/host_device.h"

namespace fettle::kernels {

// An overflow at this scale means that even unscaled numbers are too large for fp16.
inline constexpr double kSmallestLossScale = 1;
inline constexpr double kLargestLossScale = 0x1p127;
inline constexpr double kLossScaleGrowth = 2;
inline constexpr double kLossScaleBackoff = 0.5;
inline constexpr std::int64_t kLossScaleGrowthInterval = 2000;

// Adds this worker's part of a step: its losses since the last step, and its requests.
FETTLE_HOST_DEVICE inline void add_sums(const LossSums& loss, const StepInput& input,
                                        StepSums& step) {
  step.loss += static_cast<float>(loss.loss);
  step.correct += static_cast<float>(loss.correct);
  step.samples += static_cast<float>(loss.samples);
  step.not_finite += std::isfinite(loss.loss) ? 0.0F : 1.0F;
  step.stop += input.stop;
  step.regroup += input.regroup;
}

// Implements Backend::add_step_sums.
FETTLE_HOST_DEVICE inline void add_and_clear(LossSums& loss, const StepInput& input,
                                             StepSums& step) {
  add_sums(loss, input, step);
  loss = {};
}

// Scale of the gradients of the summed losses. Powers of two, so nothing is rounded.
FETTLE_HOST_DEVICE inline double dlogits_scale(const StepSettings& settings,
                                               const LossScale& loss_scale) {
  return settings.scales_loss ? loss_scale.scale / settings.batch_divisor : 1;
}

// The control before the first step of a training, including one resumed from a checkpoint.
FETTLE_HOST_DEVICE inline StepControl first_control(const StepSettings& settings,
                                                    std::int64_t updates = 0,
                                                    const LossScale& loss_scale = {}) {
  StepControl control;
  control.updates = updates;
  control.loss_scale = loss_scale;
  control.dlogits_scale = static_cast<float>(dlogits_scale(settings, loss_scale));
  return control;
}

// Clips as torch.nn.utils.clip_grad_norm_ does. `norm`: of the mean gradient.
FETTLE_HOST_DEVICE inline double clip_factor(double clip_norm, double norm) {
  constexpr double kTiny = 1e-6;  // as in PyTorch
  const double factor = clip_norm / (norm + kTiny);
  return clip_norm > 0 && factor < 1 ? factor : 1;
}

FETTLE_HOST_DEVICE inline void count_good_step(LossScale& loss) {
  if (++loss.good_steps < kLossScaleGrowthInterval) return;
  loss.good_steps = 0;
  if (loss.scale < kLargestLossScale) loss.scale *= kLossScaleGrowth;
}

// Returns false and changes nothing if a smaller scale would not help.
FETTLE_HOST_DEVICE inline bool skip_step(LossScale& loss) {
  if (loss.scale <= kSmallestLossScale) return false;
  loss.scale *= kLossScaleBackoff;
  loss.good_steps = 0;
  ++loss.skipped_steps;
  return true;
}

// The schedule's learning rate, which depends on the number of applied steps.
FETTLE_HOST_DEVICE inline float learning_rate_of(const StepControl& control) {
  // Skips that the host did not know of when it enqueued this step (StepInput).
  const std::int64_t unknown = control.loss_scale.skipped_steps - control.input.known_skips;
  const std::int64_t last = kResultsBehind;
  return control.input.learning_rates[unknown < 0 ? 0 : unknown > last ? last : unknown];
}

// Whether the sums may be incomplete. A worker sets given_up before the sums can end, so work
// enqueued behind them sees it; nothing else of the step is valid then.
FETTLE_HOST_DEVICE inline bool is_lost(const StepSettings& settings) {
  const volatile std::int32_t* const given_up = settings.given_up;
  return given_up != nullptr && *given_up != 0;
}

// Restores the state before the step, including the schedule and the loss scale.
FETTLE_HOST_DEVICE inline void undo(StepControl& control) {
  control.apply = 0;
  control.skipped = 0;
  control.lost = 1;
}

// Implements Backend::decide_step. `sums`: of all workers; control.squares: of the gradients,
// summed over all workers and samples and scaled as the loss was.
FETTLE_HOST_DEVICE inline void decide(const StepSettings& settings, const StepSums& sums,
                                      StepControl& control) {
  if (is_lost(settings)) return undo(control);
  // Converts gradients of the scaled sum of losses to gradients of the mean loss.
  const double scale = 1 / (sums.samples * dlogits_scale(settings, control.loss_scale));
  const double norm = std::sqrt(control.squares) * scale;
  const bool good = sums.not_finite == 0 && std::isfinite(sums.loss) && std::isfinite(norm);
  control.sums = sums;
  // Before skip_step(): the rate depends on the skips before this step.
  control.learning_rate = learning_rate_of(control);
  control.apply = good ? 1 : 0;
  control.skipped = 0;
  if (good) {
    control.gradient_scale = static_cast<float>(scale * clip_factor(settings.clip_norm, norm));
    ++control.updates;
    if (settings.scales_loss) count_good_step(control.loss_scale);
  } else if (settings.scales_loss) {
    control.skipped = skip_step(control.loss_scale) ? 1 : 0;
  }
  control.dlogits_scale = static_cast<float>(dlogits_scale(settings, control.loss_scale));
}

// Returns a running statistic after a step. `sum`: over its samples.
FETTLE_HOST_DEVICE inline float statistic_after(const StepControl& control, float before,
                                                float sum) {
  if (control.apply == 0) return before;
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(control.sums.samples));
}

}  // namespace fettle::kernels
