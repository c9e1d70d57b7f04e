// What the end of a run means for its trial: the outcome that was observed (endings.h), compared
// with what the run was asked to do and what it reported. Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/plan.h"

namespace fettle::core {

// A run that has exited, with all that decides what its end means.
struct EndedRun {
  const api::Study& study;
  const api::TrialSpec& trial;
  const std::optional<api::Report>& report;  // the trial's newest
  const std::vector<api::RunRecord>& records;
  const api::RunRecord& record;  // that of the run, one of `records`
  const Run& run;
};

// A run that was seen running and does not exist any more.
Run vanished_run(std::int64_t id, std::int64_t now_ms);

struct JudgedRun {
  api::Outcome outcome = api::Outcome::kFailed;
  std::string message;  // for people
};

// In this order:
//  - A final report, or every objective reported at the step that was asked for, is a result
//    however the run ended afterwards. (A Study without `resource` counts no steps: there only a
//    final report is.)
//  - Any other exit of a run that we asked to stop (record.stopping) is explained by the stop.
//  - A run that exited with 0, and whose output could not be read, was disrupted: what it reported
//    is unknown.
//  - A run that exited with 0 before its last step is over: it is judged by what it reported, and
//    has failed if it never reported the objective, unless reports may begin at a later rung
//    (late_reports.h).
JudgedRun judge_run(const EndedRun& ended);

}  // namespace fettle::core
