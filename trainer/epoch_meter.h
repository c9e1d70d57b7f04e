// EpochMeter: measures an epoch of training for its report: speed, waits, memory, the device's use
// and the settings in force. One thread, the training's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "api/trainer/trainer_config.h"
#include "base/machine/gpu_meter.h"
#include "trainer/data/batching.h"
#include "trainer/data/loader.h"
#include "trainer/parallel/collective.h"
#include "trainer/reporter/training_report.h"
#include "trainer/step/learner.h"
#include "trainer/step/learning_rate.h"

namespace fettle::trainer {

class EpochMeter {
 public:
  // Settings that the report repeats beside the measurements.
  struct Settings {
    api::Precision precision = api::Precision::kAuto;  // as configured
    std::int64_t global_batch = 0;
    std::int64_t accumulation = 1;
    std::optional<std::int64_t> planned_gpu_bytes;  // absent if the backend uses host memory
    bool shares_process = false;  // memory in use is not this training's alone: it is left out
  };

  // `learner` and `collective` must outlive it. Opens rank 0's GPU meter.
  EpochMeter(Learner& learner, const Collective& collective, const Settings& settings);

  // Called before the epoch's first step.
  void begin(const Loader& loader);
  void add_step(double seconds) { times_.add(seconds); }
  // Predictions of a settled step: images, or tokens.
  void add_predictions(std::int64_t count) { predictions_ += count; }

  // Called after the epoch's validation. `seconds`: of the whole epoch. `epoch`: its number.
  Metrics measure(const Loader& loader, const RateSchedule& rates, std::int64_t epoch,
                  double seconds);

 private:
  double waited_for_data(const Loader& loader) const {
    return loader.waited() + learner_.waited_for_data();
  }

  Learner& learner_;
  const Settings settings_;
  const std::int64_t world_size_;
  std::unique_ptr<machine::GpuMeter> gpu_meter_;  // null without a GPU, and on other ranks
  StepTimes times_;                               // of this epoch in this run
  std::int64_t predictions_ = 0;                  // of the settled steps of this epoch
  double waited_ = 0;                             // for data, at the start of the epoch
  double communicated_ = 0;                       // the learner's, then
};

}  // namespace fettle::trainer
