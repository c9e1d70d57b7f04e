#include "core/trial/run_outcome.h"

#include <algorithm>

#include "api/trial/report.h"
#include "core/facts/history.h"
#include "core/facts/late_reports.h"
#include "core/facts/measurement.h"
#include "core/trial/missing_objective.h"

namespace fettle::core {

using api::Outcome;
using api::Report;

namespace {

bool reached_end(const EndedRun& ended) {
  return ended.report && ended.report->step >= ended.record.until_step;
}

// A promoted trial still has the report of the run before, which was final for that one.
bool is_final_now(const EndedRun& ended) {
  const std::optional<Report>& report = ended.report;
  return report && report->final_result &&
         (reached_end(ended) || report->step > ended.record.last_step);
}

// Whether each objective has a value at `step` or later, and each constraint one at any step. A
// run that is cut off between two lines of its last step has not reported all of it.
bool is_complete_at(const api::StudySpec& study, const Report& report, std::int64_t step) {
  const std::vector<api::HistoryPoint> curve = api::curve_of(report);
  const bool has_objectives = std::ranges::all_of(study.objectives, [&](const auto& objective) {
    return std::ranges::any_of(curve, [&](const api::HistoryPoint& point) {
      return point.step >= step && point.metrics.count(objective.metric) > 0;
    });
  });
  const std::vector<std::string> seen = seen_metrics(report);  // sorted
  return has_objectives && std::ranges::all_of(study.constraints, [&](const auto& constraint) {
           return std::ranges::binary_search(seen, constraint.metric);
         });
}

// Whether there is a result, however the run ended after it.
bool has_result(const EndedRun& ended) {
  if (is_final_now(ended)) return missing_metrics(ended.study.spec, *ended.report).empty();
  // Without `resource` the step that is asked for is 1, and a program counts as it likes.
  return counts_steps(ended.study.spec) && reached_end(ended) &&
         is_complete_at(ended.study.spec, *ended.report, ended.record.until_step);
}

std::string end_after_result(const EndedRun& ended) {
  if (!ended.record.stopping || ended.run.outcome == Outcome::kSucceeded) return ended.run.reason;
  return "it had reported its result before it was stopped: " + ended.record.message;
}

}  // namespace

Run vanished_run(std::int64_t id, std::int64_t now_ms) {
  Run run;
  run.id = id;
  run.state = RunState::kExited;
  run.outcome = Outcome::kDisrupted;
  run.reason = "the run disappeared before it ended";
  run.ended_ms = now_ms;
  return run;
}

JudgedRun judge_run(const EndedRun& ended) {
  const api::RunRecord& record = ended.record;
  const Run& run = ended.run;
  if (has_result(ended)) return {Outcome::kSucceeded, end_after_result(ended)};
  const bool finished = is_final_now(ended) || reached_end(ended);
  Outcome observed = run.outcome.value_or(Outcome::kFailed);
  // Most programs never report "final". This one had reached its last step, and exited with 0 when
  // it was interrupted.
  const bool interrupted = observed == Outcome::kDisrupted || observed == Outcome::kStopped;
  if (interrupted && finished && run.exit_code == 0) observed = Outcome::kSucceeded;
  // A run that finished before the stop reached it is judged like any other.
  if (record.stopping && !(observed == Outcome::kSucceeded && finished)) {
    const bool hung = *record.stopping == Outcome::kHung;
    return {*record.stopping, record.message + (hung ? with_reason(run.silence) : "")};
  }
  if (observed != Outcome::kSucceeded) return {observed, run.reason};
  if (!run.read_error.empty()) {
    return {Outcome::kDisrupted, "exited with 0, but its result is unknown: " + run.read_error};
  }
  const std::string missing = explain_missing_objective(ended);
  if (missing.empty()) return {observed, run.reason};
  // A misspelt name stays wrong at later rungs; a program that evaluates rarely may report there.
  if (!is_misspelt(ended) && may_report_later(ended.study, record.until_step)) {
    return {Outcome::kSucceeded, missing};
  }
  return {Outcome::kFailed, missing};
}

}  // namespace fettle::core
