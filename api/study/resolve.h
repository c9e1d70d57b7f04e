// Resolving: the Study's trainer configuration with the parameters of one trial.
// Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

// Fills in fields whose defaults depend on others: epochs, then the batch (globalBatch 128), then
// referenceBatch (the batch). Changes no field that is set.
void fill_in_defaults(TrainingConfig& training, std::int64_t epochs);

// Returns spec.trial.trainer with each of `parameters` (name -> value) written into the field that
// it `sets`, then defaults filled in (epochs: resource.max). Errors: the Study has no built-in
// trainer; a value does not fit its field; the configuration as a whole is invalid.
Result<TrainerConfig> resolve_trainer(const StudySpec& spec, const Json& parameters);

// Whether a local run of the trial may train in a worker that outlives it.
bool trains_warm(const TrialTemplate& trial);
// Runs that such a worker trains at once.
inline std::int64_t slots_of(const TrialTemplate& trial) {
  return trial.slots > 0 ? trial.slots : 1;
}

// Returns the whole GPUs of each worker; 1 also if it has none or a part of one.
inline std::int64_t whole_gpus(const TrialTemplate& trial) {
  return trial.gpu ? trial.gpu->count.value_or(1) : 1;
}

}  // namespace fettle::api
