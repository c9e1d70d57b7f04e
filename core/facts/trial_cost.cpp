#include "core/facts/trial_cost.h"

#include <cmath>
#include <vector>

#include "core/facts/run_records.h"

namespace fettle::core {

using api::RunRecord;

double gpus_per_worker(const api::TrialTemplate& trial) {
  if (!trial.gpu) return 0;
  if (trial.gpu->fraction) return *trial.gpu->fraction;
  return trial.gpu->count ? static_cast<double>(*trial.gpu->count) : 1;
}

double seconds_of(const api::Trial& trial, std::int64_t now_ms) {
  const std::vector<RunRecord>& runs = trial.status.runs;
  if (runs.empty()) return 0;
  return runs.back().earlier_seconds + worker_seconds(runs.back(), now_ms);
}

std::int64_t worker_ms(const api::Trial& trial, std::int64_t now_ms) {
  return std::llround(seconds_of(trial, now_ms) * 1000);
}

std::optional<std::int64_t> gpu_ms(const api::Trial& trial, std::int64_t now_ms) {
  const std::vector<RunRecord>& runs = trial.status.runs;
  if (runs.empty()) return std::nullopt;
  const std::optional<double> seconds = gpu_seconds(runs.back(), now_ms);
  if (!seconds) return std::nullopt;
  return std::llround(*seconds * 1000);
}

double price_of_second(const api::TrialTemplate& trial) {
  const double gpus = gpus_per_worker(trial);
  return gpus > 0 ? gpus : 1;
}

double cost_of(const api::Study& study, const api::Trial& trial, std::int64_t now_ms) {
  if (const auto ms = gpu_ms(trial, now_ms)) return static_cast<double>(*ms) / 1000.0;
  return seconds_of(trial, now_ms) * price_of_second(study.spec.trial);
}

}  // namespace fettle::core
