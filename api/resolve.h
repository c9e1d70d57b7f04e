// What one trial trains with: the Study's trainer configuration with the trial's parameters in it.
// Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "api/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

// What is left out and depends on other fields: epochs, then the batch (globalBatch 128), then
// referenceBatch (the batch). Changes nothing that is set.
void fill_in_defaults(TrainingConfig& training, std::int64_t epochs);

// spec.trial.trainer, each of `parameters` (name -> value) written into the field that it `sets`,
// then defaults filled in (epochs: resource.max). Errors: the Study has no built-in trainer; a
// value does not fit its field; the whole does not fit together.
Result<TrainerConfig> resolve_trainer(const StudySpec& spec, const Json& parameters);

// GPUs of each worker, as far as they are whole: 1 also where it has none, or a part of one.
inline std::int64_t whole_gpus(const TrialTemplate& trial) {
  return trial.gpu ? trial.gpu->count.value_or(1) : 1;
}

}  // namespace fettle::api
