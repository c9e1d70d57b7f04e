// plan_orphan: plans a trial that outlived its Study (kubectl delete --cascade=orphan). Its
// deadlines, its retries and the meaning of its reports went with the Study, so it is stopped. Its
// report stays.
#include <algorithm>
#include <utility>

#include "core/conditions.h"
#include "core/plan.h"
#include "core/trial/trial_plan.h"

namespace fettle::core {

using api::Outcome;
using api::RunRecord;
using api::TrialPhase;

namespace {

constexpr const char* kReason = "Orphaned";
constexpr const char* kMessage = "its Study was deleted and left it behind";
// The interval of reconciles until its runs have ended.
constexpr std::int64_t kPollMs = 5'000;

RunRecord* open_record(api::TrialStatus& status) {
  const bool open = !status.runs.empty() && !status.runs.back().outcome;
  return open ? &status.runs.back() : nullptr;
}

// Records a run that was started and not recorded before its Study went; without a record its stop
// would not count as one, and the trial would never end.
void record_unknown(const std::vector<Run>& runs, api::TrialStatus& status, std::int64_t now_ms) {
  for (const Run& run : runs) {
    const bool is_newer = status.runs.empty() || status.runs.back().run < run.id;
    if (run.state == RunState::kExited || !is_newer) continue;
    RunRecord record;
    record.run = run.id;
    record.workers = run.workers;
    record.started_ms = now_ms;
    status.runs.push_back(std::move(record));
  }
}

// Records that the trial and its last run, if that is open, are Stopped.
void end(api::TrialStatus& status, std::int64_t now_ms) {
  if (RunRecord* record = open_record(status)) {
    record->outcome = record->stopping.value_or(Outcome::kStopped);
    record->message = kMessage;
    record->ended_ms = now_ms;
    record->last_step = status.report ? status.report->step : 0;
  }
  status.phase = TrialPhase::kStopped;
  set_condition(status.conditions,
                {.type = "Complete", .status = true, .reason = kReason, .message = kMessage},
                now_ms);
}

}  // namespace

TrialPlan plan_orphan(const api::Trial& trial, const std::vector<Run>& runs, std::int64_t now_ms) {
  TrialPlan plan;
  // A trial without a run is left as it is: only its Study could have started it.
  const bool has_begun = !runs.empty() || !trial.status.runs.empty();
  if (trial.metadata.deleted_ms != 0 || !has_begun) return plan;
  // The trial ends only once each of its runs has exited.
  const bool any_lives =
      std::ranges::any_of(runs, [](const Run& run) { return run.state != RunState::kExited; });
  api::TrialStatus status = trial.status;
  if (any_lives) {
    record_unknown(runs, status, now_ms);
    RunRecord* record = open_record(status);
    if (record != nullptr && !record->stopping) record->stopping = Outcome::kStopped;
    plan.wake_at_ms = now_ms + kPollMs;
  } else if (!api::is_terminal(status.phase)) {
    end(status, now_ms);
    plan.actions.emplace_back(Note{{EventType::kWarning, kReason, kMessage}});
  }
  // The write goes first: a run is stopped or deleted only after that is recorded (plan.h).
  const bool changed = status.phase != trial.status.phase || status.runs != trial.status.runs;
  if (changed) plan.actions.insert(plan.actions.begin(), UpdateTrialStatus{std::move(status)});
  for (const Run& run : runs) {
    if (run.state == RunState::kExited) plan.actions.emplace_back(DeleteRun{run.id});
    if (run.state != RunState::kExited) plan.actions.emplace_back(StopRun{run.id});
  }
  return plan;
}

}  // namespace fettle::core
