// The trial file of a run: FETTLE_TRIAL points to it, wherever the run takes place.
// A pure function; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "api/trial/trial_file.h"
#include "base/result.h"

namespace fettle::runtime {

// The directory of a trial's checkpoints below the root of all of them:
// "<root>/<study-uid>/<trial>".
std::string checkpoint_directory(const std::string& root, const std::string& study_uid,
                                 const std::string& trial);

// The fewest workers that a trial of the Study may continue with; absent: it needs all of them.
std::optional<std::int64_t> least_workers(const api::Study& study);

// The file for run `run` of `trial`; `checkpoints` is the root directory of checkpoints where the
// run takes place. kInvalid, in words: the trial's parameters do not fit the built-in trainer.
Result<api::TrialFile> make_trial_file(const api::Study& study, const api::Trial& trial,
                                       std::int64_t run, const std::string& checkpoints);

}  // namespace fettle::runtime
