#include "cli/views/timeline.h"

#include <algorithm>

#include "api/fields/enum_names.h"
#include "cli/terminal/text.h"
#include "cli/views/replicates.h"
#include "cli/views/view.h"
#include "core/facts/history.h"
#include "core/readiness.h"

namespace fettle::cli {
namespace {

// " at epoch 9"; "" if the Study counts no steps.
std::string progress_text(const api::Study& study, const api::Trial& trial) {
  return at_step(study.spec, trial.status.report ? trial.status.report->step : 0);
}

std::string objective_text(const api::Study& study, const api::Trial& trial) {
  const auto value = objective_now(study.spec, trial);
  if (!value) return "";
  return printable(study.spec.objectives[0].metric) + ' ' + format_number(*value);
}

Json objectives_json(const api::Study& study, const api::Trial& trial) {
  Json values = Json::object();
  for (std::size_t i = 0; i < study.spec.objectives.size(); ++i) {
    values.set(study.spec.objectives[i].metric, objective_now(study.spec, trial, i));
  }
  return values;
}

Json event_json(const char* event, std::int64_t at_ms, const api::Study& study) {
  return Json::object({{"event", event}, {"timeMs", at_ms}, {"study", study.metadata.name}});
}

bool is_setback(api::Outcome outcome) {
  return outcome != api::Outcome::kStopped && outcome != api::Outcome::kSucceeded;
}

// Explains why `run` follows `before`.
std::string again_text(const api::Study& study, const api::RunRecord& run,
                       const api::RunRecord& before) {
  const std::string number = " (run " + std::to_string(run.run) + ')';
  if (*before.outcome == api::Outcome::kSucceeded) {
    return " continues to " + printable(study.spec.resource.unit) + ' ' +
           std::to_string(run.until_step) + number;
  }
  if (*before.outcome == api::Outcome::kStopped) return " resumed" + number;
  return " started again" + number + "; the last run ended " +
         std::string(to_string(*before.outcome));
}

// Returns "digits-9 (repeats digits-3)", or the name alone for a trial of the search.
std::string name_text(const api::Trial& trial) {
  const std::string repeats = repeats_text(trial);
  return trial.metadata.name + (repeats.empty() ? "" : " (" + repeats + ")");
}

// Returns the entry of a started run; from a trial's second run on, with the reason for another
// one.
TimelineEntry started(const api::Study& study, const api::Trial& trial, std::size_t at,
                      RepeatedReasons& reasons) {
  const api::RunRecord& run = trial.status.runs[at];
  TimelineEntry entry;
  entry.at_ms = run.started_ms;
  entry.text = name_text(trial);
  const api::RunRecord* before = at > 0 ? &trial.status.runs[at - 1] : nullptr;
  // The previous run has an outcome: a run is recorded only after the previous one has ended.
  if (before != nullptr && before->outcome) {
    entry.warning = is_setback(*before->outcome);
    entry.text += again_text(study, run, *before);
    if (!before->message.empty()) {
      entry.text += ": " + reasons.shorten(trial.metadata.name, printable(before->message));
    }
  } else {
    entry.text += " started: " + format_parameters(trial.spec.parameters);
  }
  entry.data = event_json("trialStarted", entry.at_ms, study);
  entry.data.set("trial", trial.metadata.name);
  entry.data.set("run", run.run);
  entry.data.set("parameters", trial.spec.parameters);
  if (core::is_replicate(trial)) entry.data.set("repeats", trial.spec.search.replicates);
  return entry;
}

// Whether a run has not begun and states a reason.
bool is_waiting(const api::RunRecord& run) {
  return run.running_ms == 0 && !run.outcome && !run.stopping && !run.message.empty();
}

TimelineEntry waits(const api::Study& study, const api::Trial& trial, const api::RunRecord& run) {
  TimelineEntry entry;
  entry.at_ms = run.started_ms;
  entry.text = trial.metadata.name + " waits: " + printable(run.message);
  entry.data = event_json("trialWaiting", entry.at_ms, study);
  entry.data.set("trial", trial.metadata.name);
  entry.data.set("run", run.run);
  entry.data.set("message", run.message);
  return entry;
}

std::int64_t ended_at(const api::Trial& trial) {
  std::int64_t at_ms = 0;
  for (const api::RunRecord& run : trial.status.runs) at_ms = std::max(at_ms, run.ended_ms);
  for (const api::Fact& fact : trial.status.facts) at_ms = std::max(at_ms, fact.at_ms);
  return at_ms;
}

// Returns remarks on a run that succeeded: processes that it left behind, lines that were not
// counted.
std::string remark_of(const api::Trial& trial, RepeatedReasons& reasons) {
  const api::RunRecord* run = newest_run(trial);
  const bool has_one = run != nullptr && run->outcome == api::Outcome::kSucceeded;
  if (!has_one || run->message.empty()) return "";
  return "; " + reasons.shorten(trial.metadata.name, printable(run->message));
}

std::string completed_text(const api::Study& study, const api::Trial& trial,
                           const std::vector<api::TrialPtr>& trials, RepeatedReasons& reasons) {
  std::string text = name_text(trial) + (has_paused(trial) ? " paused: " : " completed: ");
  const api::Fact* end = core::newest_end(trial);
  if (end != nullptr && end->infeasible) {
    return text + "infeasible" + progress_text(study, trial) + remark_of(trial, reasons);
  }
  const std::string value = objective_text(study, trial);
  if (value.empty()) return text + "without a value" + remark_of(trial, reasons);
  text += value + progress_text(study, trial);
  for (const TrialResult& result : results_in_order(study.spec, trials)) {
    if (result.trial == trial.metadata.name && result.best_so_far) text += ", the best so far";
  }
  return text + remark_of(trial, reasons);
}

TimelineEntry ended(const api::Study& study, const api::Trial& trial,
                    const std::vector<api::TrialPtr>& trials, RepeatedReasons& reasons) {
  TimelineEntry entry;
  entry.at_ms = ended_at(trial);
  const char* event = "trialCompleted";
  const std::string why = printable(ending_of(trial));
  if (trial.status.phase == api::TrialPhase::kCompleted) {
    entry.text = completed_text(study, trial, trials, reasons);
  } else if (trial.status.phase == api::TrialPhase::kStopped) {
    event = "trialStopped";
    entry.text = name_text(trial) + " stopped" + progress_text(study, trial) + ": " +
                 reasons.shorten(trial.metadata.name, why);
  } else {
    event = "trialFailed";
    entry.warning = true;
    entry.text = name_text(trial) + " failed: " + reasons.shorten(trial.metadata.name, why);
  }
  entry.data = event_json(event, entry.at_ms, study);
  entry.data.set("trial", trial.metadata.name);
  if (core::is_replicate(trial)) entry.data.set("repeats", trial.spec.search.replicates);
  entry.data.set("step", trial.status.report ? trial.status.report->step : 0);
  entry.data.set("objectives", objectives_json(study, trial));
  if (!why.empty()) entry.data.set("message", why);
  return entry;
}

TimelineEntry condition_changed(const api::Study& study, const api::StatusCondition& condition,
                                RepeatedReasons& reasons) {
  TimelineEntry entry;
  entry.at_ms = condition.since_ms;
  entry.warning = condition.type == "Failed";
  entry.ends_study = condition.type == "Succeeded" || condition.type == "Failed";
  entry.text = study.metadata.name + ' ' + state_of(study) + ": " +
               reasons.shorten(
                   "", printable(condition.message.empty() ? condition.reason : condition.message));
  entry.data = event_json("study", condition.since_ms, study);
  entry.data.set("condition", condition.type);
  entry.data.set("reason", condition.reason);
  entry.data.set("message", condition.message);
  return entry;
}

}  // namespace

std::vector<TimelineEntry> Timeline::observe(const api::Study& study,
                                             const std::vector<api::TrialPtr>& trials) {
  std::vector<TimelineEntry> timeline;
  for (const api::TrialPtr& trial : trials) {
    Seen& seen = seen_[trial->metadata.name];
    // A trial that has not changed is the same object.
    if (seen.trial == trial) continue;
    seen.trial = trial;
    for (std::size_t i = 0; i < trial->status.runs.size(); ++i) {
      const api::RunRecord& run = trial->status.runs[i];
      if (is_waiting(run)) {
        if (run.run > seen.waiting_run && !first_) timeline.push_back(waits(study, *trial, run));
        seen.waiting_run = std::max(seen.waiting_run, run.run);
        continue;
      }
      if (run.run <= seen.newest_run) continue;
      seen.newest_run = run.run;
      if (!first_) timeline.push_back(started(study, *trial, i, reasons_));
      // After a wait, the start is when the run really began, not when it was recorded.
      const bool waited = run.run <= seen.waiting_run && run.running_ms != 0;
      if (first_ || !waited) continue;
      timeline.back().at_ms = run.running_ms;
      timeline.back().data.set("timeMs", run.running_ms);
    }
    // A trial that paused without a value may fail later.
    const bool ends = api::is_terminal(trial->status.phase) && trial->status.phase != seen.phase;
    if (ends && !first_) timeline.push_back(ended(study, *trial, trials, reasons_));
    seen.phase = trial->status.phase;
  }
  for (const api::StatusCondition& condition : study.status.conditions) {
    const auto known = std::ranges::find_if(conditions_, [&](const api::StatusCondition& other) {
      return other.type == condition.type && other.status == condition.status;
    });
    if (known != conditions_.end() || first_ || !condition.status) continue;
    // The trials that start show that the study runs.
    const bool is_told = condition.type == "Running" || core::is_readiness(condition);
    if (!is_told) timeline.push_back(condition_changed(study, condition, reasons_));
  }
  conditions_ = study.status.conditions;
  first_ = false;
  std::ranges::stable_sort(timeline, {}, &TimelineEntry::at_ms);
  return timeline;
}

std::string render_entry(const TimelineEntry& entry, std::int64_t start_ms) {
  const double seconds = static_cast<double>(std::max<std::int64_t>(entry.at_ms - start_ms, 0));
  return '[' + padded(format_elapsed(seconds / 1000), 7, true) + "] " + entry.text;
}

}  // namespace fettle::cli
