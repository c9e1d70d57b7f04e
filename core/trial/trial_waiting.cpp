#include "core/trial/trial_waiting.h"

#include <utility>

#include "api/fields/enum_names.h"
#include "api/fields/timestamp.h"
#include "core/facts/run_records.h"
#include "core/names.h"
#include "search/study_problem.h"

namespace fettle::core {

bool is_refused(const Conditions& conditions) {
  const api::StatusCondition* const said = find_condition(conditions, "Waiting");
  return said != nullptr && said->status && said->reason == kRefused;
}

void set_trial_waiting(Conditions& conditions, const char* reason, const std::string& message,
                       std::int64_t now_ms) {
  api::StatusCondition condition;
  condition.type = "Waiting";
  condition.status = true;
  condition.reason = reason;
  condition.message = truncate_message(message);
  set_condition(conditions, std::move(condition), now_ms);
}

void end_trial_waiting(Conditions& conditions, std::int64_t now_ms) {
  api::StatusCondition condition;
  condition.type = "Waiting";
  condition.reason = "Started";
  condition.message = "it waits for nothing";
  set_condition(conditions, std::move(condition), now_ms);
}

// The record of a first run that was not written down is as old as this view, so its trial's age
// counts; a run that lost its workers waits since then.
bool starts_slowly(const api::Trial& trial, const api::RunRecord& record, std::int64_t now_ms) {
  const bool is_recorded = !trial.status.runs.empty();
  std::int64_t since_ms = is_recorded ? record.started_ms : trial.metadata.created_ms;
  if (!record.resizes.empty()) since_ms = record.resizes.back().at_ms;
  return since_ms != 0 && now_ms >= since_ms + kSayWaitMs;
}

std::string why_backing_off(const std::string& trial, const api::RunRecord& record,
                            std::int64_t next_ms) {
  return run_name(trial, record.run) + " ended " + std::string(api::to_string(*record.outcome)) +
         " (" + record.message + "); the next run starts at " + api::format_timestamp(next_ms);
}

std::string how_it_starts(const api::Study& study, const api::TrialStatus& status) {
  if (!status.report || status.report->checkpoint.empty()) return " starts";
  const std::string step = std::to_string(status.report->checkpoint_step);
  if (search::keeps_checkpoints(study.status)) return " continues from step " + step;
  return " starts again: the checkpoint of step " + step +
         " was deleted with its pod (spec.trial.checkpoints has neither a claim nor a size)";
}

}  // namespace fettle::core
