#include "trainer/epoch_meter.h"

#include <algorithm>

#include "api/trial/metric_names.h"
#include "trainer/model/model_flops.h"
#include "trainer/step/device_metrics.h"
#include "trainer/step/precision.h"

namespace fettle::trainer {

namespace metric = api::metric;

EpochMeter::EpochMeter(Learner& learner, const Collective& collective, const Settings& settings)
    : learner_(learner), settings_(settings), world_size_(collective.world_size()) {
  if (collective.rank() != 0) return;
  gpu_meter_ = machine::GpuMeter::open(learner.backend().device().uuid);
}

void EpochMeter::begin(const Loader& loader) {
  times_ = {};
  predictions_ = 0;
  waited_ = waited_for_data(loader);
  communicated_ = learner_.communicated();
}

Metrics EpochMeter::measure(const Loader& loader, const RateSchedule& rates, std::int64_t epoch,
                            double seconds) {
  const double busy = std::max(times_.total(), 1e-9);  // seconds in steps; never 0: a divisor
  const NetworkPlan& plan = learner_.network().plan();
  // A sample of text has many predictions.
  const double flops = model_flops(plan) * static_cast<double>(predictions_) /
                       static_cast<double>(plan.predictions());
  const kernels::LossScale& scaler = learner_.optimizer().control().loss_scale;
  // As the schedule counts: optimiser steps of the training, without skipped ones.
  const std::int64_t last_step =
      (epoch + 1) * rates.length().steps_per_epoch - 1 - scaler.skipped_steps;
  Metrics metrics = {
      {plan.tokens ? metric::kTokens : metric::kImages, static_cast<double>(predictions_) / busy},
      {metric::kStepMedian, 1e3 * times_.quantile(0.5)},
      {metric::kStepP95, 1e3 * times_.quantile(0.95)},
      {metric::kStepP99, 1e3 * times_.quantile(0.99)},
      {metric::kDataWait, (waited_for_data(loader) - waited_) / busy},
      {metric::kOptimizer, learner_.optimizer().state_mib()},
      {metric::kLearningRate, rates.at(last_step)},
      {metric::kGlobalBatch, static_cast<double>(settings_.global_batch)},
      {metric::kWorldSize, static_cast<double>(world_size_)},
      {metric::kAccumulation, static_cast<double>(settings_.accumulation)},
      {metric::kSeconds, seconds},
  };
  if (!settings_.shares_process) metrics.emplace_back(metric::kMemory, peak_memory_mib());
  const api::Precision precision = precision_on(learner_.backend(), settings_.precision);
  append(metrics,
         compute_metrics(flops, busy, peak_flops_of(learner_.backend().device(), precision),
                         world_size_));
  if (settings_.planned_gpu_bytes) {
    metrics.emplace_back(metric::kGpuMemoryPlanned,
                         static_cast<double>(*settings_.planned_gpu_bytes));
  }
  if (const auto& all = learner_.network().implementations(); !all.empty()) {
    metrics.emplace_back(metric::kFallbacks, static_cast<double>(fallbacks(all)));
  }
  if (gpu_meter_) {
    machine::GpuUse use = gpu_meter_->take();
    if (settings_.shares_process) use.memory.reset();
    append(metrics, gpu_metrics(use));
  }
  if (world_size_ > 1) {
    metrics.emplace_back(metric::kCommunicationShare,
                         (learner_.communicated() - communicated_) / busy);
  }
  if (settings_.precision == api::Precision::kFp16) {
    metrics.emplace_back(metric::kLossScale, scaler.scale);
    metrics.emplace_back(metric::kSkippedSteps, static_cast<double>(scaler.skipped_steps));
  }
  return metrics;
}

}  // namespace fettle::trainer
