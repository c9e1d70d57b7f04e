// What one trial trains with: the Study's trainer configuration with the trial's parameters in it.
// Pure; usable from any thread.
#pragma once

#include "api/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

// spec.trial.trainer, each of `parameters` (name -> value) written into the field that it `sets`,
// then epochs (resource.max), batch (globalBatch 128) and referenceBatch filled in. Errors: the
// Study has no built-in trainer; a value does not fit its field; the whole does not fit together.
Result<TrainerConfig> resolve_trainer(const StudySpec& spec, const Json& parameters);

}  // namespace fettle::api
