// Judges the end of a run: compares the observed outcome (endings.h) with the run's task and its
// reports. Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/plan.h"

namespace fettle::core {

// A run that has exited, with everything that decides the meaning of its end.
struct EndedRun {
  const api::Study& study;
  const api::TrialSpec& trial;
  const std::optional<api::Report>& report;  // the trial's newest
  const std::vector<api::RunRecord>& records;
  const api::RunRecord& record;  // the run's, one of `records`
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
//  - A run that exited with 0, and whose output could not be read, was disrupted: its reports are
//    unknown.
//  - A run that exited with 0 before its last step is over: it is judged by its reports, and has
//    failed if it never reported the objective, unless reports may begin at a later rung
//    (late_reports.h).
JudgedRun judge_run(const EndedRun& ended);

}  // namespace fettle::core
