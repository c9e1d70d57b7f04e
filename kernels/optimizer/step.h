// How an optimiser step ends: whether it is applied, by what its gradients are scaled, and what
// becomes of fp16's loss scale. Pure functions of numbers that the backend holds, so that a GPU
// decides without the host, and decides as a CPU does, bit for bit. All workers decide from the
// same sums and so alike. Usable from any thread and from device code.
//
// A step is applied if all workers' losses and the norm of the summed gradients are finite. The
// dynamic loss scale is torch.amp.GradScaler's: a step that overflows is skipped and halves the
// scale; after kGrowthInterval good steps in a row it doubles. At the smallest scale there is
// nothing to gain by another try: the training diverges, as fp32 and bf16 do at once (apply and
// skipped are both 0).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/host_device.h"

namespace fettle::kernels {

struct LossScale {
  static constexpr double kFirst = 65536;
  static constexpr double kSmallest = 1;  // below, the numbers are too large for fp16 as such
  static constexpr double kLargest = 0x1p127;
  static constexpr double kGrowth = 2;
  static constexpr double kBackoff = 0.5;
  static constexpr std::int64_t kGrowthInterval = 2000;
};

// This worker's part of a step: its losses since the last one, and its wishes.
FETTLE_HOST_DEVICE inline void add_sums(const LossSums& loss, const StepInput& input,
                                        StepSums& step) {
  step.loss += static_cast<float>(loss.loss);
  step.correct += static_cast<float>(loss.correct);
  step.samples += static_cast<float>(loss.samples);
  step.not_finite += std::isfinite(loss.loss) ? 0.0F : 1.0F;
  step.stop += input.stop;
  step.regroup += input.regroup;
}

// On the gradients of the sum of the losses. Powers of two, so nothing is rounded.
FETTLE_HOST_DEVICE inline double dlogits_scale_of(const StepSettings& settings,
                                                  const StepControl& control) {
  return settings.scales_loss ? control.loss_scale / settings.batch_divisor : 1;
}

// Before the first step of a training.
FETTLE_HOST_DEVICE inline StepControl first_control(const StepSettings& settings) {
  StepControl control;
  if (settings.scales_loss) control.loss_scale = LossScale::kFirst;
  control.dlogits_scale = static_cast<float>(dlogits_scale_of(settings, control));
  return control;
}

// Clipping is torch.nn.utils.clip_grad_norm_'s. `norm`: of the mean gradient.
FETTLE_HOST_DEVICE inline double clip_factor(double clip_norm, double norm) {
  constexpr double kTiny = 1e-6;  // as in PyTorch
  const double factor = clip_norm / (norm + kTiny);
  return clip_norm > 0 && factor < 1 ? factor : 1;
}

FETTLE_HOST_DEVICE inline void count_good_step(StepControl& control) {
  if (++control.good_steps < LossScale::kGrowthInterval) return;
  control.good_steps = 0;
  if (control.loss_scale < LossScale::kLargest) control.loss_scale *= LossScale::kGrowth;
}

// False, and nothing changed, where a smaller scale would not help.
FETTLE_HOST_DEVICE inline bool skip_step(StepControl& control) {
  if (control.loss_scale <= LossScale::kSmallest) return false;
  control.loss_scale *= LossScale::kBackoff;
  control.good_steps = 0;
  ++control.skipped_steps;
  return true;
}

// Backend::decide_step. `sums`: of all workers; control.squares: of the gradients, summed over all
// workers and samples and scaled as the loss was.
FETTLE_HOST_DEVICE inline void decide(const StepSettings& settings, const StepSums& sums,
                                      StepControl& control) {
  const double scale = 1 / (sums.samples * dlogits_scale_of(settings, control));
  const double norm = std::sqrt(control.squares) * scale;
  const bool good = sums.not_finite == 0 && std::isfinite(sums.loss) && std::isfinite(norm);
  control.sums = sums;
  control.apply = good ? 1 : 0;
  control.skipped = 0;
  if (good) {
    control.gradient_scale = static_cast<float>(scale * clip_factor(settings.clip_norm, norm));
    ++control.updates;
    if (settings.scales_loss) count_good_step(control);
  } else if (settings.scales_loss) {
    control.skipped = skip_step(control) ? 1 : 0;
  }
  control.dlogits_scale = static_cast<float>(dlogits_scale_of(settings, control));
}

// Where a step leaves a running statistic. `sum`: over its samples.
FETTLE_HOST_DEVICE inline float statistic_after(const StepControl& control, float before,
                                                float sum) {
  if (control.apply == 0) return before;
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(control.sums.samples));
}

}  // namespace fettle::kernels
