#include "runtime/make_trial_file.h"

#include "api/study/resolve.h"
#include "api/trainer/trainer_config.h"
#include "search/rungs/population.h"
#include "search/study_problem.h"

namespace fettle::runtime {

std::string checkpoint_directory(const std::string& root, const std::string& study_uid,
                                 const std::string& trial) {
  return root + "/" + study_uid + "/" + trial;
}

// A user's own program may be unable to continue without one of its workers.
std::optional<std::int64_t> least_workers(const api::Study& study) {
  const api::Workers& workers = study.spec.trial.workers;
  if (!study.spec.trial.trainer || workers.min >= workers.max) return std::nullopt;
  return workers.min;
}

Result<api::TrialFile> make_trial_file(const api::Study& study, const api::Trial& trial,
                                       std::int64_t run, const std::string& checkpoints) {
  const std::string& uid = study.metadata.uid;
  api::TrialFile file;
  file.study = study.metadata.name;
  file.study_uid = uid;
  file.trial = trial.metadata.name;
  file.index = trial.spec.index;
  file.run = run;
  file.seed = trial.spec.seed;
  file.parameters = trial.spec.parameters;
  file.until_step = trial.spec.until_step;
  file.workers = trial.spec.workers;
  const std::int64_t gpus = api::whole_gpus(study.spec.trial);
  if (gpus > 1) file.gpus_per_worker = gpus;  // one is the default
  file.least_workers = least_workers(study);
  file.resource = study.spec.resource;
  file.rungs = search::rung_steps(study);
  for (const api::Objective& objective : study.spec.objectives) {
    file.objectives.push_back({objective.metric, objective.direction});
  }
  file.parallelism = study.spec.budget.parallelism;
  file.grace_period = study.spec.trial.grace_period;
  file.checkpoints.directory = checkpoint_directory(checkpoints, uid, trial.metadata.name);
  if (study.spec.trial.checkpoints) file.checkpoints.keep = study.spec.trial.checkpoints->keep;
  if (api::replaces_trials(study.spec.algorithm.name)) {
    file.checkpoints.keep_rungs = search::kKeptIntervals;
  }
  if (const auto& parent = trial.spec.parent) {
    file.parent = {checkpoint_directory(checkpoints, uid, parent->trial), parent->step};
  }
  if (study.spec.trial.trainer) {
    FETTLE_ASSIGN(file.trainer, api::resolve_trainer(study.spec, trial.spec.parameters));
    // "auto" without a usable GPU would train on the CPU, and hold its GPUs unused.
    api::BackendKind& backend = file.trainer->training.backend;
    const bool has_gpus = study.spec.trial.gpu.has_value();
    if (has_gpus && backend == api::BackendKind::kAuto) backend = api::BackendKind::kCuda;
  }
  return file;
}

}  // namespace fettle::runtime
