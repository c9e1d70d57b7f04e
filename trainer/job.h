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

// Only for a configuration by itself; a trial file says all of it.
struct ByHand {
  std::uint64_t seed = 0;
  std::optional<std::int64_t> until_epoch;  // default: training.epochs
  std::string checkpoints;
};

struct Assignment {
  TrainingJob job;
  std::optional<api::TrialFile> trial;  // absent: a configuration by itself
};

// Errors name the file: missing, not JSON, wrong fields (all of them), a trial for another image, a
// unit other than epochs.
Result<Assignment> read_assignment(const std::string& path, const ByHand& by_hand);

}  // namespace fettle::trainer
