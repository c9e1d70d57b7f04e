#include "api/study/resolve.h"

#include <utility>

#include "api/trainer/check_trainer.h"
#include "api/trainer/trainer_json.h"

namespace fettle::api {

void fill_in_defaults(TrainingConfig& training, std::int64_t epochs) {
  if (!training.epochs) training.epochs = epochs;
  if (!training.global_batch && !training.batch_per_worker) {
    training.global_batch = kDefaultGlobalBatch;
  }
  if (!training.reference_batch) {
    training.reference_batch =
        training.global_batch ? training.global_batch : training.batch_per_worker;
  }
}

Result<TrainerConfig> resolve_trainer(const StudySpec& spec, const Json& parameters) {
  if (!spec.trial.trainer) return invalid("the Study has no trial.trainer to resolve");
  TrainerConfig config = *spec.trial.trainer;
  for (const Parameter& parameter : spec.parameters) {
    const Json* value = parameters.find(parameter.name);
    if (parameter.sets.empty() || value == nullptr) continue;  // absent: inactive in this trial
    if (Status set = set_trainer_field(config, parameter.sets, *value); !set) {
      return Error(set.error()).in("parameter " + parameter.name);
    }
  }
  fill_in_defaults(config.training, spec.resource.max);
  // The Study's fromEpoch is for its trials with qat.
  if (auto& quantize = config.training.quantize; quantize && !trains_quantized(config.training)) {
    quantize->from_epoch.reset();
  }
  FieldErrors errors;
  check_trainer(config, FieldPath(), errors);
  if (!errors.empty()) return invalid(to_string(std::move(errors).take()));
  return config;
}

bool trains_warm(const TrialTemplate& trial) {
  const Execution execution = trial.execution.value_or(Execution::kAuto);
  if (execution != Execution::kAuto) return execution == Execution::kWarm;
  return trial.trainer && trial.workers.max == 1 && whole_gpus(trial) == 1;
}

}  // namespace fettle::api
