// What the end of a run means for its trial: the outcome that was observed (endings.h), held
// against what was asked of the run and what it reported. Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>

#include "api/study.h"
#include "api/trial.h"
#include "core/plan.h"

namespace fettle::core {

struct JudgedRun {
  api::Outcome outcome = api::Outcome::kFailed;
  std::string message;  // for people
};

// A report of the last step counts, even if the run was asked to stop or disrupted meanwhile; a
// stop that we asked for (record.stopping) explains any other exit. A run that exited with 0 before
// its last step has ended all the same, and is judged by what it reported; without the objective it
// has failed. `report`: the trial's newest; `run` has exited.
JudgedRun judge_run(const api::StudySpec& study, const api::TrialSpec& spec,
                    const std::optional<api::Report>& report, const api::RunRecord& record,
                    const Run& run);

}  // namespace fettle::core
