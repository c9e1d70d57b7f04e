#include "trainer/job.h"

#include <algorithm>

#include "api/trainer_json.h"
#include "base/file.h"
#include "base/json.h"

namespace fettle::trainer {

namespace {

constexpr std::int64_t kDefaultEpochs = 1;

Result<TrainingJob> job_of_trial(const api::TrialFile& file) {
  if (!file.trainer) {
    return invalid("the trial has no trainer configuration; it is meant for another image");
  }
  if (file.resource.unit != "epoch") {
    return invalid("resource.unit is \"" + file.resource.unit +
                   "\"; the built-in trainer counts epochs, write unit: epoch");
  }
  TrainingJob job;
  job.config = *file.trainer;
  if (!job.config.training.epochs) job.config.training.epochs = file.resource.max;
  job.seed = static_cast<std::uint64_t>(file.seed);
  job.until_epoch = file.until_step;
  job.checkpoints = file.checkpoints.directory;
  job.keep = {file.checkpoints.keep, file.checkpoints.keep_rungs.value_or(0), file.rungs};
  job.parent = file.parent;
  return job;
}

Result<TrainingJob> job_by_hand(const Json& document, const ByHand& by_hand) {
  TrainingJob job;
  FETTLE_ASSIGN(job.config, api::read_trainer_config(document));
  std::optional<std::int64_t>& epochs = job.config.training.epochs;
  epochs = epochs.value_or(by_hand.until_epoch.value_or(kDefaultEpochs));
  job.seed = by_hand.seed;
  job.until_epoch = by_hand.until_epoch.value_or(*epochs);
  job.checkpoints = by_hand.checkpoints;
  return job;
}

// Processes of one worker share its cores and its memory.
void share_worker(const ByHand& by_hand, Assignment& assignment) {
  const auto of_trial = assignment.trial ? assignment.trial->gpus_per_worker : std::nullopt;
  assignment.gpus = std::max<std::int64_t>(by_hand.gpus.value_or(of_trial.value_or(1)), 1);
  TrainingJob& job = assignment.job;
  job.processes_here = assignment.gpus;
  std::int64_t& threads = job.config.training.threads;
  threads = std::max<std::int64_t>(threads / assignment.gpus, 1);
}

Result<Assignment> read_document(const Json& document, const ByHand& by_hand) {
  Assignment assignment;
  if (document.find("study") == nullptr) {
    FETTLE_ASSIGN(assignment.job, job_by_hand(document, by_hand));
  } else {
    FETTLE_ASSIGN(assignment.trial, api::read_trial_file(document));
    FETTLE_ASSIGN(assignment.job, job_of_trial(*assignment.trial));
  }
  share_worker(by_hand, assignment);
  return assignment;
}

}  // namespace

Result<Assignment> read_assignment(const std::string& path, const ByHand& by_hand) {
  FETTLE_ASSIGN(const std::string text, read_file(path));
  auto document = parse_json(text);
  if (!document.ok()) return Error(document.error()).in(path);
  auto assignment = read_document(*document, by_hand);
  if (!assignment.ok()) return Error(assignment.error()).in(path);
  return assignment;
}

}  // namespace fettle::trainer
