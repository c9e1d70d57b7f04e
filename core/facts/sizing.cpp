#include "core/facts/sizing.h"

#include "api/fields/quantity.h"
#include "api/trial/display.h"

namespace fettle::core {

bool sizes_itself(const api::StudySpec& spec) {
  const api::Workers& workers = spec.trial.workers;
  if (workers.min >= workers.max) return false;
  if (workers.sizing) return *workers.sizing == api::WorkersSizing::kAuto;
  return spec.trial.trainer.has_value();
}

bool sizes_gpu_memory(const api::StudySpec& spec) {
  return spec.trial.gpu && spec.trial.gpu->memory == api::kAutoAmount;
}

std::string gpu_text_of(const api::StudySpec& spec, const api::TrialSpec& trial) {
  if (!trial.gpu_memory || !sizes_gpu_memory(spec)) {
    return api::gpu_text(spec.trial, trial.workers);
  }
  return api::format_quantity(*trial.gpu_memory);
}

bool needs_more_gpu_memory(const api::Trial& trial) {
  if (trial.status.runs.empty() || api::is_terminal(trial.status.phase)) return false;
  const api::RunRecord& newest = trial.status.runs.back();
  return newest.outcome && newest.gpu_memory_short &&
         trial.spec.gpu_memory.value_or(0) <= newest.gpu_memory.value_or(0);
}

void record_gpu_memory(const api::StudySpec& spec, const Run& run, api::RunRecord& record) {
  const bool ended_well = record.stopping || record.outcome == api::Outcome::kSucceeded;
  if (!run.gpu_memory_short || ended_well || !sizes_gpu_memory(spec)) return;
  record.outcome = api::Outcome::kOutOfMemory;
  record.gpu_memory_short = run.gpu_memory_short;
}

}  // namespace fettle::core
