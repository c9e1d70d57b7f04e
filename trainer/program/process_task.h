// Reads the task of fettle-trainer: the trial file that FETTLE_TRIAL names, or a bare trainer
// configuration, for use by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/trial/trial_file.h"
#include "base/result.h"
#include "trainer/training_task.h"

namespace fettle::trainer {

// Settings for a bare configuration; a trial file has its own, but `gpus` overrides them.
struct CliOverrides {
  std::uint64_t seed = 0;
  std::optional<std::int64_t> until_epoch;  // default: training.epochs
  std::string checkpoints;
  std::optional<std::int64_t> gpus;  // of this worker
};

struct ProcessTask {
  TrainingTask task;
  std::optional<api::TrialFile> trial;  // absent: a bare configuration
  // GPUs of this worker. Each GPU gets its own process and rank.
  std::int64_t gpus = 1;
};

// Errors name the file: missing, not JSON, wrong fields (all of them), a trial for another image, a
// unit other than epochs.
Result<ProcessTask> read_process_task(const std::string& path, const CliOverrides& overrides);

}  // namespace fettle::trainer
