// Everything in the status is derived from trials and spec, except started_ms and ended_ms.
#include "core/study/study_status.h"

#include <algorithm>
#include <cmath>

#include "api/fields/quantity.h"
#include "api/trial/display.h"
#include "core/conditions.h"
#include "core/facts/failed_starts.h"
#include "core/facts/late_reports.h"
#include "core/facts/run_records.h"
#include "core/readiness.h"
#include "core/study/blocked.h"
#include "search/study_problem.h"

namespace fettle::core {

using api::StudyStatus;
using api::TrialCounts;

namespace {

constexpr const char* kNothingKeepsThem =
    "spec.trial.checkpoints has neither a claim nor a size, so their checkpoints are deleted with "
    "their pods";

void set_conditions(const api::Study& study, const StudyOutlook& outlook, std::int64_t now_ms,
                    StudyStatus& status) {
  const auto set = [&](const char* type, bool value, const std::string& reason,
                       const std::string& message) {
    api::StatusCondition condition;
    condition.type = type;
    condition.status = value;
    condition.reason = reason;
    condition.message = truncate_message(message);
    set_condition(status.conditions, std::move(condition), now_ms);
  };
  const bool suspended = study.spec.suspend && !outlook.ended;
  if (outlook.ended) {
    set("Running", false, outlook.ended->reason, outlook.ended->message);
  } else if (!outlook.waiting.empty()) {
    set("Running", false, "Waiting", outlook.waiting);
  } else if (suspended) {
    set("Running", false, "Suspended", "spec.suspend is true");
  } else if (outlook.draining) {
    set("Running", true, "Stopping", outlook.draining->message);
  } else if (!outlook.all_wait.empty()) {
    set("Running", true, "Waiting", outlook.all_wait);
  } else {
    set("Running", true, "Searching", "trials are being run");
  }
  const bool resumes = search::keeps_checkpoints(study.status);
  set("Suspended", suspended, suspended ? "Requested" : "NotRequested",
      !suspended ? "spec.suspend is false"
      : resumes  ? "spec.suspend is true; trials keep their checkpoints and resume later"
                 : "spec.suspend is true; trials start again from the first step later, since " +
                      std::string(kNothingKeepsThem));
  const bool waits = !outlook.waiting.empty();
  set("Waiting", waits, waits ? kEarlierTrials : "Begun",
      waits ? outlook.waiting : "nothing is in the way");
  const bool succeeded = outlook.ended && outlook.ended->success;
  const bool failed = outlook.ended && !outlook.ended->success;
  // For a Study that was over before its spec was changed. Before its first end it gets neither of
  // the two conditions: set_condition() adds none that is false.
  const std::string reason = outlook.ended ? outlook.ended->reason : "Reopened";
  const std::string message = outlook.ended ? outlook.ended->message : "the spec was changed";
  if (!outlook.ended) set(kExpiring, false, "Reopened", "the spec was changed");
  const auto failed_start = common_failed_start(outlook.ledger.trials());
  set(kFailsAtStart, failed_start.has_value(), failed_start ? "SameFailure" : "Reported",
      failed_start.value_or("a trial has reported"));
  set("Succeeded", succeeded, reason, message);
  set("Failed", failed, reason, message);
  set_readiness(status, now_ms);
}

// Rounded up for people: minutes need no seconds, and hours only quarters.
std::string rough_duration(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  const double unit = seconds < kMinute ? 1 : seconds < kHour ? kMinute : kHour / 4;
  return api::format_duration(std::ceil(seconds / unit) * unit);
}

api::StudyDisplay display_of(const api::Study& study, const StudyStatus& status) {
  api::StudyDisplay display;
  display.state = state_of(status);
  if (!status.best.empty()) display.best = api::short_numbers(status.best.front().objectives);
  if (study.spec.trial.gpu) display.gpu_hours = api::short_number(status.gpu_hours);
  if (status.eta_seconds) display.eta = rough_duration(*status.eta_seconds);
  return display;
}

// `status` without the fields that change as time passes.
StudyStatus timeless(StudyStatus status) {
  status.updated_ms = 0;
  status.active_seconds = 0;
  status.gpu_hours = 0;
  status.eta_seconds.reset();
  status.display.gpu_hours.clear();
  status.display.eta.clear();
  return status;
}

// The events about what changes from `before` to `next`.
std::vector<EventNote> status_notes(const StudyStatus& before, const StudyStatus& next) {
  std::vector<EventNote> notes;
  const auto turned = [&](const char* type, bool to) {
    return is_true(before.conditions, type) != to && is_true(next.conditions, type) == to;
  };
  if (before.started_ms == 0 && next.started_ms != 0) {
    notes.push_back({EventType::kNormal, "Started", "searching with " + next.algorithm});
  }
  if (next.gpu && before.gpu != next.gpu) {
    notes.push_back({EventType::kNormal, "GpuProfileChosen", next.gpu->reason});
  }
  if (turned("Waiting", true)) {
    const api::StatusCondition& condition = *find_condition(next.conditions, "Waiting");
    notes.push_back({EventType::kNormal, condition.reason, condition.message});
  }
  const bool resumes = search::keeps_checkpoints(next);
  if (turned("Suspended", true)) {
    notes.push_back({EventType::kNormal, "Suspended",
                     resumes ? "trials stop and keep their checkpoints" : "trials stop"});
    const std::int64_t lost = before.trials.running;
    if (!resumes && lost > 0) {
      notes.push_back({EventType::kWarning, kNoDurableCheckpoints,
                       "what " + std::to_string(lost) +
                           (lost == 1 ? " trial has" : " trials have") +
                           " trained is lost, since " + kNothingKeepsThem});
    }
  }
  // A Study that ends while it is suspended is no longer Suspended, but nothing resumes.
  if (turned("Suspended", false) && !is_finished(next)) {
    notes.push_back({EventType::kNormal, "Resumed",
                     resumes ? "trials resume from their checkpoints"
                             : "trials start again from the first step"});
  }
  if (turned(kFailsAtStart, true)) {
    notes.push_back({EventType::kWarning, kFailsAtStart,
                     "two runs ended within seconds with the same words, so such runs are not "
                     "tried again: " +
                         find_condition(next.conditions, kFailsAtStart)->message});
  }
  if (next.first_report && !before.first_report) {
    notes.push_back({EventType::kNormal, "FirstReport",
                     "trials first report at step " + std::to_string(*next.first_report) +
                         "; from now on they begin at a rung that is not below it"});
  }
  for (const char* type : {"Succeeded", "Failed"}) {
    if (!turned(type, true)) continue;
    const api::StatusCondition& condition = *find_condition(next.conditions, type);
    const bool failed = std::string(type) == "Failed";
    notes.push_back(
        {failed ? EventType::kWarning : EventType::kNormal, condition.reason, condition.message});
  }
  return notes;
}

}  // namespace

std::string state_of(const StudyStatus& status) {
  for (const char* state : {"Succeeded", "Failed", "Suspended", "Blocked", "Waiting"}) {
    if (is_true(status.conditions, state)) return state;
  }
  const api::StatusCondition* running = find_condition(status.conditions, "Running");
  return running == nullptr ? "" : running->reason;
}

std::optional<std::int64_t> planned_trials(const api::StudySpec& spec, const TrialCounts& counts,
                                           bool is_over) {
  const bool is_limited = spec.budget.trials < api::kNoTrialLimit;
  if (!is_limited && !is_over) return std::nullopt;
  const std::int64_t searched =
      std::max(counts.created - counts.replicates, is_limited ? spec.budget.trials : 0);
  if (!spec.replicates || is_over) return searched + counts.replicates;
  const std::int64_t leaders = std::min(spec.replicates->leaders, spec.budget.trials);
  return searched + std::max(counts.replicates, leaders * spec.replicates->runs);
}

StudyStatus study_status(const api::Study& study, const StudyOutlook& outlook,
                         std::int64_t now_ms) {
  StudyStatus status = study.status;
  status.observed_generation = study.metadata.generation;
  status.updated_ms = now_ms;
  const Ledger& ledger = outlook.ledger;
  status.trials = ledger.counts();
  status.trials.created = ledger.next_index();
  status.best = ledger.best();
  status.hypervolume = ledger.hypervolume();
  status.first_report = first_late_report(ledger.problem(), ledger.trials());
  // Empty: there was no sampler to ask (a refused or waiting Study), so the last answer stays.
  if (!outlook.algorithm.empty()) status.algorithm = outlook.algorithm;
  // A Study that is over keeps the GPU profile that its own trials used.
  if (outlook.gpu && !outlook.ended) status.gpu = *outlook.gpu;
  status.gpu_hours = outlook.spending.gpu_hours;
  status.active_seconds = outlook.spending.active_seconds;
  status.eta_seconds.reset();
  if (!outlook.ended && !outlook.draining && !study.spec.suspend) {
    status.eta_seconds = ledger.estimate_remaining(outlook.spending, outlook.slots, now_ms);
  }
  // A Study that continues because its spec was changed keeps its start and loses its end.
  if (status.started_ms == 0 && outlook.waiting.empty()) status.started_ms = now_ms;
  if (!outlook.ended) {
    status.ended_ms = 0;
  } else if (status.ended_ms == 0) {
    status.ended_ms = now_ms;
  }
  const TrialCounts& counts = status.trials;
  status.progress = std::to_string(counts.completed + counts.stopped + counts.failed);
  if (const auto planned = planned_trials(study.spec, counts, outlook.ended.has_value())) {
    status.progress += "/" + std::to_string(*planned);
  }
  set_conditions(study, outlook, now_ms, status);
  status.display = display_of(study, status);
  return status;
}

std::optional<std::int64_t> write_time(const StudyStatus& before, const StudyStatus& next,
                                       bool running, std::int64_t now_ms) {
  if (before.updated_ms == 0) return now_ms;  // never written
  if (timeless(before) == timeless(next)) {
    if (!running) return std::nullopt;
    return std::max(now_ms, before.updated_ms + kSpendingIntervalMs);
  }
  if (is_finished(next) || before.observed_generation != next.observed_generation) return now_ms;
  return std::max(now_ms, before.updated_ms + kStatusIntervalMs);
}

void add_status(const StudyStatus& before, StudyStatus next, bool running, std::int64_t now_ms,
                StudyPlan& plan) {
  const auto at_ms = write_time(before, next, running, now_ms);
  if (!at_ms) return;  // `next` says nothing new
  if (*at_ms > now_ms) {
    plan.wake_at_ms = std::min(*at_ms, plan.wake_at_ms.value_or(*at_ms));
    return;
  }
  std::vector<EventNote> notes = status_notes(before, next);
  plan.actions.emplace_back(UpdateStudyStatus{std::move(next)});
  for (EventNote& note : notes) plan.actions.emplace_back(Note{std::move(note)});
}

}  // namespace fettle::core
