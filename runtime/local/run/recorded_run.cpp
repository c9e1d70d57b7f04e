#include "runtime/local/run/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "api/trial_file.h"
#include "base/file.h"
#include "control/clock.h"
#include "core/names.h"
#include "runtime/local/process/outcome_file.h"
#include "runtime/local/run/run_command.h"

namespace fettle::local {

bool was_prepared(const Layout& layout, const api::Trial& trial, std::int64_t run) {
  const auto uid = trial.metadata.labels.find(core::kStudyUidLabel);
  const Result<std::string> text = read_file(layout.trial_file(trial.metadata.name, run));
  if (!text.ok() || uid == trial.metadata.labels.end()) return false;
  const Result<Json> document = parse_json(*text);
  if (!document.ok()) return false;
  const Result<api::TrialFile> file = api::read_trial_file(*document);
  return file.ok() && file->study_uid == uid->second;
}

std::optional<core::Run> recall_run(const Layout& layout, const api::Trial& trial,
                                    std::int64_t run) {
  std::error_code code;
  const std::string& name = trial.metadata.name;
  const bool prepared = std::filesystem::exists(layout.trial_file(name, run), code);
  const bool begun = std::filesystem::exists(layout.log_file(name, run), code) ||
                     std::filesystem::exists(layout.outcome_file(name, run), code);
  if (!prepared || !begun) return std::nullopt;
  core::Run recalled;
  recalled.id = run;
  recalled.pod_uid = pod_uid_of(trial, run);
  recalled.state = core::RunState::kExited;
  recalled.outcome = api::Outcome::kDisrupted;
  recalled.reason = "fettle run and its supervisor were killed while it ran";
  // The room on the disk that the start of the run reserved for its outcome (outcome_file.h).
  release_outcome(layout.run_directory(trial.metadata.name, run));
  const Result<std::string> text =
      read_file(layout.outcome_file(trial.metadata.name, run), kMaxMessageBytes);
  if (!text.ok()) return recalled;
  const Result<Json> document = parse_json(*text);
  if (!document.ok()) return recalled;
  const Result<RunOutcome> outcome = read_outcome(*document);
  // One of an equally named trial of a Study that was deleted since says nothing about this one.
  if (!outcome.ok() || outcome->pod_uid != recalled.pod_uid) return recalled;
  take_outcome(*outcome, recalled);
  // Its clock may have been fast (future_times.h).
  const std::int64_t ahead_ms =
      std::max<std::int64_t>(0, recalled.ended_ms - control::SystemClock().now_ms());
  recalled.started_ms -= ahead_ms;
  recalled.ended_ms -= ahead_ms;
  if (recalled.report) recalled.report->at_ms -= ahead_ms;
  return recalled;
}

void take_outcome(const RunOutcome& outcome, core::Run& run) {
  run.state = core::RunState::kExited;
  run.outcome = outcome.outcome;
  if (outcome.exit_code) run.exit_code = static_cast<int>(*outcome.exit_code);
  run.reason = outcome.message;
  run.silence = outcome.silence;
  run.started_ms = outcome.started_ms;
  run.ended_ms = outcome.ended_ms;
  if (outcome.report) run.report = outcome.report;
}

}  // namespace fettle::local
