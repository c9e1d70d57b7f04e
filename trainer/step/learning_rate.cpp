#include "trainer/step/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fettle::trainer {

double learning_rate_scale(api::ScalingRule rule, api::OptimizerKind optimizer, double batch,
                           double reference) {
  if (rule == api::ScalingRule::kAuto) {
    rule =
        optimizer == api::OptimizerKind::kSgd ? api::ScalingRule::kLinear : api::ScalingRule::kSqrt;
  }
  switch (rule) {
    case api::ScalingRule::kLinear:
      return batch / reference;
    case api::ScalingRule::kSqrt:
      return std::sqrt(batch / reference);
    default:  // none
      return 1;
  }
}

double schedule_factor(const api::ScheduleConfig& schedule, const ScheduleLength& length,
                       std::int64_t step) {
  const auto per_epoch = static_cast<double>(length.steps_per_epoch);
  const double total = per_epoch * static_cast<double>(length.epochs);
  const double warmup = std::min(total, std::round(schedule.warmup_epochs * per_epoch));
  const auto at = static_cast<double>(step);
  if (at < warmup) return (at + 1) / warmup;

  // Progress after the warm-up: 0 at its first step, 1 after the last step of the training.
  const double progress = total > warmup ? std::min(1.0, (at - warmup) / (total - warmup)) : 1;
  switch (schedule.name) {
    case api::ScheduleKind::kStep:
      return std::pow(schedule.gamma, std::floor(at / (schedule.step_epochs * per_epoch)));
    case api::ScheduleKind::kCosine:
      return schedule.final_fraction +
             (1 - schedule.final_fraction) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    case api::ScheduleKind::kLinear:
      return 1 + (schedule.final_fraction - 1) * progress;
    default:  // constant
      return 1;
  }
}

RateSchedule::RateSchedule(const api::TrainingConfig& config, std::int64_t global_batch,
                           const ScheduleLength& length)
    : base_(config.learning_rate *
            learning_rate_scale(config.learning_rate_scaling, config.optimizer,
                                static_cast<double>(global_batch),
                                static_cast<double>(*config.reference_batch))),
      schedule_(config.schedule),
      length_(length) {}

}  // namespace fettle::trainer
