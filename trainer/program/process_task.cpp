#include "trainer/program/process_task.h"

#include <algorithm>

#include "api/trainer/trainer_json.h"
#include "base/file.h"
#include "base/json.h"

namespace fettle::trainer {

namespace {

constexpr std::int64_t kDefaultEpochs = 1;

Result<TrainingTask> task_of_trial(const api::TrialFile& file) {
  if (!file.trainer) {
    return invalid("the trial has no trainer configuration; it is meant for another image");
  }
  if (file.resource.unit != "epoch") {
    return invalid("resource.unit is \"" + file.resource.unit +
                   "\"; the built-in trainer counts epochs, write unit: epoch");
  }
  TrainingTask task;
  task.config = *file.trainer;
  // The schedule spans the whole trial; this run may end earlier (until_epoch).
  if (!task.config.training.epochs) task.config.training.epochs = file.resource.max;
  task.seed = static_cast<std::uint64_t>(file.seed);
  task.until_epoch = file.until_step;
  task.checkpoints = file.checkpoints.directory;
  task.keep = {file.checkpoints.keep, file.checkpoints.keep_rungs.value_or(0), file.rungs};
  task.parent = file.parent;
  return task;
}

Result<TrainingTask> task_of_configuration(const Json& document, const CliOverrides& overrides) {
  TrainingTask task;
  FETTLE_ASSIGN(task.config, api::read_trainer_config(document));
  std::optional<std::int64_t>& epochs = task.config.training.epochs;
  epochs = epochs.value_or(overrides.until_epoch.value_or(kDefaultEpochs));
  task.seed = overrides.seed;
  task.until_epoch = overrides.until_epoch.value_or(*epochs);
  task.checkpoints = overrides.checkpoints;
  return task;
}

// Processes of one worker share its cores and its memory.
void share_worker(const CliOverrides& overrides, ProcessTask& process) {
  const auto of_trial = process.trial ? process.trial->gpus_per_worker : std::nullopt;
  process.gpus = std::max<std::int64_t>(overrides.gpus.value_or(of_trial.value_or(1)), 1);
  TrainingTask& task = process.task;
  task.processes_here = process.gpus;
  std::int64_t& threads = task.config.training.threads;
  threads = std::max<std::int64_t>(threads / process.gpus, 1);
}

Result<ProcessTask> read_document(const Json& document, const CliOverrides& overrides) {
  ProcessTask process;
  if (document.find("study") == nullptr) {
    FETTLE_ASSIGN(process.task, task_of_configuration(document, overrides));
  } else {
    FETTLE_ASSIGN(process.trial, api::read_trial_file(document));
    FETTLE_ASSIGN(process.task, task_of_trial(*process.trial));
  }
  share_worker(overrides, process);
  return process;
}

}  // namespace

Result<ProcessTask> read_process_task(const std::string& path, const CliOverrides& overrides) {
  FETTLE_ASSIGN(const std::string text, read_file(path));
  auto document = parse_json(text);
  if (!document.ok()) return Error(document.error()).in(path);
  auto process = read_document(*document, overrides);
  if (!process.ok()) return Error(process.error()).in(path);
  return process;
}

}  // namespace fettle::trainer
