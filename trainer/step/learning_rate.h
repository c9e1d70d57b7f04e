// Schedule: the learning rate of each optimiser step, and its scaling with the global batch.
//
// Pure functions of the step; nothing is carried from one step to the next, so a resumed training
// has the same learning rate as an uninterrupted one.
#pragma once

#include <cstdint>

#include "api/trainer/trainer_config.h"

namespace fettle::trainer {

// The factor f(B / B_ref) by which the learning rate follows the global batch in use (`batch`),
// relative to the batch it was chosen for (`reference`). Linear for SGD (Goyal et al. 2017, arXiv
// 1706.02677), square root for Adam, AdamW and RMSprop (Malladi et al. 2022, arXiv 2205.10287) and
// LAMB (its paper), unless the rule says otherwise. Depends on the batch only, never on the number
// of workers.
double learning_rate_scale(api::ScalingRule rule, api::OptimizerKind optimizer, double batch,
                           double reference);

struct ScheduleLength {
  std::int64_t steps_per_epoch = 1;
  std::int64_t epochs = 1;  // of the whole training, even if a run stops earlier
};

// The factor on the learning rate at optimiser step `step` (0 is the first). Warm-up rises linearly
// and reaches 1 with its last step; cosine and linear fall from there to `finalFraction` at the end
// of the training; step multiplies by gamma every stepEpochs, counted from the start.
double schedule_factor(const api::ScheduleConfig& schedule, const ScheduleLength& length,
                       std::int64_t step);

// The learning rates of a training with this global batch.
class RateSchedule {
 public:
  // Defaults must be filled in.
  RateSchedule(const api::TrainingConfig& config, std::int64_t global_batch,
               const ScheduleLength& length);
  const ScheduleLength& length() const { return length_; }
  double at(std::int64_t step) const { return base_ * schedule_factor(schedule_, length_, step); }

 private:
  const double base_;  // scaled with the global batch
  const api::ScheduleConfig schedule_;
  const ScheduleLength length_;
};

}  // namespace fettle::trainer
