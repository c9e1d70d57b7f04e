#include "runtime/local/run/recorded_run.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "api/trial/trial_file.h"
#include "base/file.h"
#include "core/control/clock.h"
#include "core/names.h"
#include "runtime/local/log/trial_log_reader.h"
#include "runtime/local/process/outcome_file.h"
#include "runtime/local/run/run_command.h"
#include "runtime/metric_lines.h"

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

namespace {

// A Study of the same name uses a run directory again: a log that is older than the trial file
// belongs to another Study's run.
bool has_own_log(const Layout& layout, const api::Trial& trial, std::int64_t run) {
  if (!was_prepared(layout, trial, run)) return false;
  std::error_code code;
  const std::string& name = trial.metadata.name;
  const auto prepared = std::filesystem::last_write_time(layout.trial_file(name, run), code);
  if (code) return false;
  const auto printed = std::filesystem::last_write_time(layout.log_file(name, run), code);
  return !code && printed >= prepared;
}

// The outcome in outcome.json. A file of an equally named trial of a Study that was deleted since
// does not count.
std::optional<RunOutcome> outcome_of(const Layout& layout, const api::Trial& trial,
                                     std::int64_t run) {
  const Result<std::string> text =
      read_file(layout.outcome_file(trial.metadata.name, run), kMaxMessageBytes);
  if (!text.ok()) return std::nullopt;
  const Result<Json> document = parse_json(*text);
  if (!document.ok()) return std::nullopt;
  const Result<RunOutcome> outcome = read_outcome(*document);
  if (!outcome.ok() || outcome->pod_uid != pod_uid_of(trial, run)) return std::nullopt;
  return *outcome;
}

std::optional<api::Report> report_in_log(const Layout& layout, const api::Trial& trial,
                                         std::int64_t run,
                                         const FindMetricOptions& find_metric_options) {
  if (!find_metric_options || trial.spec.workers > 1 || !has_own_log(layout, trial, run)) {
    return std::nullopt;
  }
  const auto options = find_metric_options(trial);
  if (!options) return std::nullopt;
  runtime::MetricLines lines(*options);
  const std::int64_t now_ms = control::SystemClock().now_ms();
  TrialLogReader reader(layout.log_file(trial.metadata.name, run));
  const Status read = reader.read(
      /*ended=*/true, [&](std::string_view bytes) { lines.feed(bytes, now_ms); });
  // No finish(): the last line of a killed program may end within a number.
  if (!read.ok() || !lines.has_report() || lines.has_counted()) return std::nullopt;
  return lines.report();
}

}  // namespace

std::optional<core::Run> recall_run(const Layout& layout, const api::Trial& trial, std::int64_t run,
                                    const FindMetricOptions& find_metric_options) {
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
  recalled.reason = "its supervisor was killed while it ran, or the machine stopped";
  // Frees the disk space that the start of the run reserved for its outcome (outcome_file.h).
  release_outcome(layout.run_directory(trial.metadata.name, run));
  const std::optional<RunOutcome> outcome = outcome_of(layout, trial, run);
  if (!outcome) {
    recalled.report = report_in_log(layout, trial, run, find_metric_options);
    return recalled;
  }
  take_outcome(*outcome, recalled);
  // The supervisor's clock may have been fast (future_times.h).
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
  run.presumed = outcome.presumed;
  run.reason = outcome.message;
  run.silence = outcome.silence;
  run.started_ms = outcome.started_ms;
  run.ended_ms = outcome.ended_ms;
  if (outcome.report) run.report = outcome.report;
}

}  // namespace fettle::local
