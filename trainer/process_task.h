// Reads what fettle-trainer is to do: the trial file that FETTLE_TRIAL names, or a trainer's
// configuration by itself, for use by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/trial_file.h"
#include "base/result.h"
#include "trainer/training.h"

namespace fettle::trainer {

// For a configuration by itself; a trial file says all of it, but `gpus` wins.
struct ByHand {
  std::uint64_t seed = 0;
  std::optional<std::int64_t> until_epoch;  // default: training.epochs
  std::string checkpoints;
  std::optional<std::int64_t> gpus;  // of this worker
};

struct ProcessTask {
  TrainingTask task;
  std::optional<api::TrialFile> trial;  // absent: a configuration by itself
  // That this worker is to use; of several each has a process of its own, which is a rank.
  std::int64_t gpus = 1;
};

// Errors name the file: missing, not JSON, wrong fields (all of them), a trial for another image, a
// unit other than epochs.
Result<ProcessTask> read_process_task(const std::string& path, const ByHand& by_hand);

}  // namespace fettle::trainer
