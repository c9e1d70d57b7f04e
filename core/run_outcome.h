// What the end of a run means for its trial: the outcome that was observed (endings.h), compared
// with what the run was asked to do and what it reported. Pure functions; usable from any thread.
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

// A report of the last step is a result, even if the run was stopped or disrupted after it. Any
// other exit of a run that we asked to stop (record.stopping) is explained by the stop. A run that
// exited with 0 before its last step is over: it is judged by what it reported, and has failed if
// it never reported the objective. `report`: the trial's newest; `run` has exited.
JudgedRun judge_run(const api::StudySpec& study, const api::TrialSpec& spec,
                    const std::optional<api::Report>& report, const api::RunRecord& record,
                    const Run& run);

}  // namespace fettle::core
