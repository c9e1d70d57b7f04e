#include "core/trial/run_observer.h"

#include <algorithm>
#include <string>

#include "core/facts/run_records.h"
#include "core/facts/sizing.h"
#include "core/names.h"
#include "core/trial/run_outcome.h"
#include "core/trial/trial_write.h"
#include "search/study_problem.h"

namespace fettle::core {

using api::Outcome;
using api::RunRecord;

RunObserver::RunObserver(const TrialView& view, std::int64_t now_ms, TrialPlanDraft& draft)
    : study_(view.study),
      trial_(view.trial),
      runs_(view.runs),
      now_ms_(now_ms),
      resumes_(search::keeps_checkpoints(view.study.status)),
      draft_(draft),
      status_(draft.status) {}

bool RunObserver::observe() {
  for (const Run& run : runs_) {
    const auto record = std::ranges::find(status_.runs, run.id, &RunRecord::run);
    if (record != status_.runs.end()) {
      update_record(*record, run);
    } else if (run.id == 0 && status_.runs.empty()) {
      adopt_first(run);
    } else if (status_.runs.empty() || run.id > status_.runs.back().run) {
      // Its record was written before it was started, and this view does not have it yet.
      draft_.wake_at(now_ms_ + kStaleViewMs);
      return false;
    } else {  // its record was pruned long ago
      draft_.cleanups.emplace_back(DeleteRun{run.id});
    }
  }
  return true;
}

// Adds the record of a first run that is seen for the first time. If the trial was stopped before
// that, the run is not wanted any more.
void RunObserver::adopt_first(const Run& run) {
  if (api::is_terminal(status_.phase)) {
    stop_or_delete(run);
    return;
  }
  RunRecord& record = append_run(status_, trial_.spec, now_ms_);
  // As it was started, not as the spec is by now; and started_ms no later than the run's own start,
  // because update_record() accepts no earlier time at which it began to run.
  record.workers = run.workers;
  if (run.until_step != 0) record.until_step = run.until_step;
  if (run.started_ms != 0) record.started_ms = std::min(now_ms_, run.started_ms);
  update_record(record, run);
}

// Stops a run that is not wanted, or deletes it if it has exited.
void RunObserver::stop_or_delete(const Run& run) {
  if (run.state != RunState::kExited) draft_.commands.emplace_back(StopRun{run.id});
  if (run.state == RunState::kExited) draft_.cleanups.emplace_back(DeleteRun{run.id});
}

void RunObserver::update_record(RunRecord& record, const Run& run) {
  // A run whose end is recorded changes nothing any more; its reports are ignored.
  if (!record.outcome) {
    if (run.report) take_report(study_, *run.report, status_);
    const bool has_run = run.state != RunState::kPending;
    if (has_run && !run.pod_uid.empty()) record.pod_uid = run.pod_uid;
    // Its queue has preempted it: the time up to now is charged, the wait is not.
    if (run.queued && run.state != RunState::kExited) reset_running(record);
    // A run that exits while its queue has taken its nodes is charged up to its end, or has been
    // charged when it was seen to wait: never from its start again.
    if (record.running_ms == 0 && has_run && !run.queued) {
      // Without a time of its own, a run that exited unseen is charged from the intent to start it,
      // and one that runs from now on.
      const std::int64_t unknown = run.state == RunState::kRunning ? now_ms_ : record.started_ms;
      const std::int64_t began_ms = run.started_ms != 0 ? run.started_ms : unknown;
      // The time comes from a node, whose clock may be wrong: clamped between intent and now.
      record.running_ms = std::min(std::max(began_ms, record.started_ms), now_ms_);
      record.gpus = run.gpus;
    }
    if (record.running_ms != 0 && run.state != RunState::kExited) update_workers(record, run);
    update_unplaced(record, run);
    if (run.state == RunState::kPending) draft_.wake_at(now_ms_ + kWaitingMs);
    if (run.state == RunState::kExited) close_record(record, run);
  }
  if (record.outcome) stop_or_delete(run);
}

// A queue preempted the run. Its cost so far stays on the record; the time in the queue costs
// nothing.
void RunObserver::reset_running(RunRecord& record) {
  if (record.running_ms == 0) return;
  note_preemption(record);
  carry_seconds(record, worker_seconds(record, now_ms_));
  record.running_ms = 0;
  record.resizes.clear();
}

void RunObserver::note_preemption(const RunRecord& record) {
  draft_.note(EventType::kWarning, api::kPreempted,
              run_name(trial_.metadata.name, record.run) +
                  describe_preemption(record, status_.report, study_.spec.resource.unit, now_ms_));
}

// Only for the elastic policy, because each change is a write.
void RunObserver::update_unplaced(RunRecord& record, const Run& run) {
  if (!sizes_itself(study_.spec)) return;
  const bool waits = run.state != RunState::kExited && run.unplaced_workers > 0;
  if (waits && record.unplaced_ms == 0) record.unplaced_ms = now_ms_;
  if (!waits) record.unplaced_ms = 0;
  const std::int64_t running = run.running_workers.value_or(run.workers);
  if (run.state == RunState::kRunning && (waits || running < run.workers)) {
    draft_.wake_at(now_ms_ + kWaitingMs);  // no event tells that a worker still has no node
  }
}

void RunObserver::update_workers(RunRecord& record, const Run& run) {
  // A gang that is Pending again, because it lost a worker, is not charged while it waits.
  const std::int64_t if_unknown = run.state == RunState::kRunning ? run.workers : 0;
  set_workers(record, run.running_workers.value_or(if_unknown), now_ms_);
}

void RunObserver::close_record(RunRecord& record, const Run& run) {
  const JudgedRun judged =
      judge_run({study_, trial_.spec, status_.report, status_.runs, record, run});
  record.outcome = judged.outcome;
  record.message = truncate_message(judged.message);
  record.last_step = last_step_of(status_, record, resumes_);
  const bool disrupted = record.outcome == Outcome::kDisrupted;
  if (run.queued && disrupted) {
    record.reason = api::kPreempted;
    // 0: the wait was seen before, and reset_running() has noted it, or the run never ran.
    if (record.running_ms != 0) note_preemption(record);
  }
  if (run.presumed && disrupted) doubt_disruption(status_, record);  // may make it Failed
  record_gpu_memory(study_.spec, run, record);                       // may make it OutOfMemory
  // Clamped like running_ms, because a node's clock may be wrong; 0: the end has no time.
  const std::int64_t ended_ms = run.ended_ms != 0 ? std::min(run.ended_ms, now_ms_) : now_ms_;
  record.ended_ms = std::max(ended_ms, record.running_ms);
}

}  // namespace fettle::core
