// plan_trial: observe the runs, decide what the trial needs, record it, act.
//
//            start           running            exit 0 with a result
//   Pending ------> Pending ---------> Running ----------------------> Completed
//      ^                                  |  \__ spec.stop __________> Stopped
//      |<-- retry, disruption, resume ----+  \__ spec.suspend _______> Paused (-> Pending)
//      |<-- until_step has grown ---- Completed  \_ retries spent ___> Failed
//
// Before every start comes a status write that fails if this view of the trial is stale, so two
// controllers cannot both start a run; before a further attempt at the same run, an uncached read,
// so that a start that is refused for long costs no writes. Before every deletion comes the write
// that records the run's result. Before every stop its cause is recorded (RunRecord::stopping),
// which is never taken back.
//
// The first run needs no such write: its intent is the Trial itself, which determines the run. It
// is started after an uncached read (StartRun::confirm), and its record is written together with
// the first news of it: a reason to wait, that it runs (before it can report, since a report counts
// only once the pod is recorded), or how it ended. Why this is safe:
//  - Two starts make one run, because the name is deterministic.
//  - A crash after the start leaves a run without a record; the next reconcile adds the record.
//  - A run that disappears before it was recorded was not seen running: it is started again, like a
//    recorded run that never ran.
//  - A controller that read the trial, then slept until the run was over, may start it once more.
//    Its record has an outcome by then, so it is stopped and removed, and its reports are ignored.
#include "core/trial/trial_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/fields/quantity.h"
#include "api/study/study.h"
#include "api/trial/display.h"
#include "core/conditions.h"
#include "core/facts/failed_starts.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"
#include "core/facts/sizing.h"
#include "core/names.h"
#include "core/trial/meeting.h"
#include "core/trial/missing_objective.h"
#include "core/trial/run_message.h"
#include "core/trial/run_observer.h"
#include "core/trial/run_outcome.h"
#include "core/trial/trial_plan_draft.h"
#include "core/trial/trial_waiting.h"
#include "core/trial/trial_write.h"
#include "search/study_problem.h"

namespace fettle::core {

using api::Outcome;
using api::RunRecord;
using api::TrialPhase;

namespace {

// A run that is recorded but not seen is started again after this time; until then it may exist and
// not be visible yet.
constexpr std::int64_t kStartAgainMs = 1'000;
// How long the processes of an ended run may take to end before the trial says that it waits.
constexpr std::int64_t kLingeringMs = 30'000;

class TrialPlanner {
 public:
  TrialPlanner(const TrialView& view, std::int64_t now_ms)
      : whole_study_(view.study),
        study_(view.study.spec),
        trial_(view.trial),
        spec_(view.trial.spec),
        runs_(view.runs),
        now_ms_(now_ms),
        resumes_(search::keeps_checkpoints(view.study.status)),
        draft_{.status = view.trial.status},
        status_(draft_.status),
        observer_(view, now_ms, draft_) {}

  TrialPlan plan() {
    if (trial_.metadata.deleted_ms != 0) return {};
    if (observer_.observe()) decide();
    status_.gpus = gpu_text_of(study_, spec_);  // alone it is not worth a write
    return assemble();
  }

 private:
  const Run* find_run(std::int64_t id) const;

  void decide();
  void decide_open(RunRecord& record);
  void decide_short(const RunRecord& record);
  void decide_ended(const RunRecord& record);
  void complete(const RunRecord& record);
  void end_without_result(const RunRecord& record, const Run& run);
  void supervise(RunRecord& record, const Run& run);
  void set_waiting(const char* reason, const std::string& message) {
    set_trial_waiting(status_.conditions, reason, message, now_ms_);
  }
  void report_waiting(RunRecord& record, const Run& run);
  void report_meeting(const Run& run);
  void ask_to_stop(RunRecord& record, Outcome why, const std::string& message);
  void check_deadlines(RunRecord& record, const Run& run);
  void check_heartbeat(RunRecord& record, const Run& run, std::int64_t patience_ms);
  void retry(std::int64_t earliest_ms);
  void start_next();
  void wait_for_end();
  void enter_phase(TrialPhase phase, const std::string& reason, const std::string& message);

  TrialPlan assemble();
  void keep_refusal();
  void note(EventType type, std::string reason, std::string message) {
    draft_.note(type, std::move(reason), std::move(message));
  }
  void wake_at(std::int64_t at_ms) { draft_.wake_at(at_ms); }

  const api::Study& whole_study_;
  const api::StudySpec& study_;
  const api::Trial& trial_;
  const api::TrialSpec& spec_;
  const std::vector<Run>& runs_;
  const std::int64_t now_ms_;
  const bool resumes_;  // checkpoints outlive a run
  TrialPlanDraft draft_;
  api::TrialStatus& status_;  // of the draft
  RunObserver observer_;
};

const Run* TrialPlanner::find_run(std::int64_t id) const {
  const auto found = std::ranges::find(runs_, id, &Run::id);
  return found == runs_.end() ? nullptr : &*found;
}

// ---- Deciding ----------------------------------------------------------------------------------

// Whether the trial needs a run, has one that is to be supervised, or has ended. A promoted trial
// returns here from Completed: its newest run has succeeded at an earlier step than is wanted now.
void TrialPlanner::decide() {
  const RunRecord* newest = status_.runs.empty() ? nullptr : &status_.runs.back();
  if (api::is_terminal(status_.phase)) {
    // Paused without a value, and the Study found that none will come (kNoResult): the only stop
    // with which a terminal trial is active. A Completed trial always has a run.
    if (is_active(trial_) && spec_.stop)
      return enter_phase(TrialPhase::kFailed, kNoResult, newest->message);
    const bool grown = status_.phase == TrialPhase::kCompleted && newest != nullptr &&
                       spec_.until_step > newest->until_step && !spec_.stop;
    if (!grown) return;
    set_condition(status_.conditions,
                  {.type = "Complete",
                   .status = false,
                   .reason = "Promoted",
                   .message = "continues to step " + std::to_string(spec_.until_step)},
                  now_ms_);
    status_.phase = TrialPhase::kPending;
  }
  if (newest != nullptr && !newest->outcome) return decide_open(status_.runs.back());
  if (newest != nullptr) return decide_ended(*newest);
  if (spec_.stop) return enter_phase(TrialPhase::kStopped, spec_.stop->reason, spec_.stop->message);
  retry(now_ms_);
}

// The newest run has not ended, according to its record.
void TrialPlanner::decide_open(RunRecord& record) {
  if (const Run* run = find_run(record.run)) return supervise(record, *run);
  if (record.running_ms != 0) {
    observer_.close_record(record, vanished_run(record.run, now_ms_));
    return decide_ended(record);
  }
  // Recorded, but never seen: not started, or not visible yet.
  if (spec_.stop || spec_.suspend || record.stopping) {
    record.outcome = record.stopping.value_or(Outcome::kStopped);
    record.message = "stopped before it began";
    record.ended_ms = now_ms_;
    return decide_ended(record);
  }
  if (now_ms_ < record.started_ms + kStartAgainMs)
    return wake_at(record.started_ms + kStartAgainMs);
  // It starts with the sizes in the spec by now. If the run exists after all, this changes nothing.
  record.workers = spec_.workers;
  record.gpu_memory = spec_.gpu_memory;
  wake_at(now_ms_ + kStartAgainMs);
  draft_.commands.emplace_back(StartRun{record.run, /*confirm=*/true});
}

// The run's GPU memory was too small. The Study gives the trial more, or stops it because no GPU is
// larger, which makes the configuration infeasible and is no failure of the trial.
void TrialPlanner::decide_short(const RunRecord& record) {
  if (spec_.stop) {
    const bool none = spec_.stop->reason == kNoSuchGpuMemory;
    return enter_phase(none ? TrialPhase::kCompleted : TrialPhase::kStopped, spec_.stop->reason,
                       spec_.stop->message);
  }
  // The Study has decided: it gives more than this run had.
  if (spec_.gpu_memory.value_or(0) > record.gpu_memory.value_or(0)) return retry(now_ms_);
  status_.phase = spec_.suspend ? TrialPhase::kPaused : TrialPhase::kPending;
  if (spec_.suspend) return;
  // The Study decides within a moment, unless the GPU profiles have just changed.
  if (now_ms_ < record.ended_ms + kSayWaitMs) return wake_at(record.ended_ms + kSayWaitMs);
  set_waiting(kNoSuchGpuMemory.data(), kNoLargerGpuNow);
}

// The newest run has ended: the trial ends as well, or gets another run.
void TrialPlanner::decide_ended(const RunRecord& record) {
  const Outcome outcome = *record.outcome;
  // A result counts even if the trial is to stop.
  if (outcome == Outcome::kSucceeded && record.until_step >= spec_.until_step) {
    return complete(record);
  }
  if (record.gpu_memory_short) return decide_short(record);  // has a rule of its own for spec_.stop
  if (spec_.stop) return enter_phase(TrialPhase::kStopped, spec_.stop->reason, spec_.stop->message);
  if (outcome == Outcome::kDisrupted) {
    const std::int64_t row = disruptions_without_progress(status_, resumes_);
    if (row < kMaxDisruptionsWithoutProgress) {
      // The first one in a row costs no back-off. `row` is 0 if the run got further, or if a queue
      // preempted it.
      return retry(row <= 1 ? now_ms_ : record.ended_ms + backoff_ms(row - 1));
    }
    return enter_phase(TrialPhase::kFailed, "Disrupted",
                       "disrupted " + std::to_string(row) +
                           " times in a row without getting further: " + record.message);
  }
  // Succeeded, and was promoted since; or stopped for a suspension.
  if (!counts_against_retries(outcome)) return retry(now_ms_);
  const std::int64_t failures = failures_of(status_);
  // nullptr once it is deleted: then an earlier plan has passed the two checks that need it.
  const Run* run = find_run(record.run);
  // Another run of a program that succeeded without the objective would do the same again.
  const bool no_result =
      run != nullptr && run->outcome == Outcome::kSucceeded && outcome == Outcome::kFailed;
  if (no_result) return end_without_result(record, *run);
  // The built-in trainer would refuse the same configuration again. (OutOfMemory: a GPU's memory of
  // a fixed size is too small for it.)
  const bool refused = study_.trial.trainer && run != nullptr &&
                       run->exit_code == api::kTrainerRefusesInput &&
                       (outcome == Outcome::kFailed || outcome == Outcome::kOutOfMemory);
  if (refused) return enter_phase(TrialPhase::kFailed, "InvalidConfiguration", record.message);
  if (failed_as_others(whole_study_.status, status_)) {
    return enter_phase(TrialPhase::kFailed, kFailsAtStart, record.message);
  }
  if (failures > study_.trial.retries) {
    const std::string times = failures == 1 ? "" : " (" + std::to_string(failures) + " runs)";
    return enter_phase(TrialPhase::kFailed, std::string(api::to_string(outcome)),
                       record.message + times);
  }
  retry(record.ended_ms + backoff_ms(failures));
}

// The newest run exited with 0, and has not reported the objective.
void TrialPlanner::end_without_result(const RunRecord& record, const Run& run) {
  if (is_result_lost({whole_study_, spec_, status_.report, status_.runs, record, run})) {
    return enter_phase(TrialPhase::kStopped, "ResultLost",
                       "the run before was cut short, and what it reported is lost; this one had "
                       "nothing left to report: " +
                           record.message);
  }
  enter_phase(TrialPhase::kFailed, kNoResult, record.message);
}

// The newest run has succeeded at the step that is wanted.
void TrialPlanner::complete(const RunRecord& record) {
  const std::string how_far = describe_completion(study_, status_, record);
  if (reached_step(status_, record.until_step) < record.until_step) {
    return enter_phase(TrialPhase::kCompleted, kShortOfUntilStep, how_far);
  }
  const Run* run = find_run(record.run);
  const bool ended_well = run == nullptr || run->outcome == Outcome::kSucceeded;
  enter_phase(TrialPhase::kCompleted, "Completed",
              how_far + (ended_well ? "" : "; then: " + record.message));
}

// The trial needs another run, not before `earliest_ms`; that is later than now only after a run.
void TrialPlanner::retry(std::int64_t earliest_ms) {
  status_.phase = spec_.suspend ? TrialPhase::kPaused : TrialPhase::kPending;
  if (spec_.suspend) return;
  if (earliest_ms <= now_ms_) return start_next();
  wake_at(earliest_ms);
  const RunRecord& record = status_.runs.back();
  if (earliest_ms - record.ended_ms >= kSayWaitMs) {
    set_waiting(kBackOff, why_backing_off(trial_.metadata.name, record, earliest_ms));
  }
  const std::vector<RunRecord>& before = trial_.status.runs;
  if (!before.empty() && before.back().outcome) return;  // the event was recorded already
  note(EventType::kWarning, "Retrying",
       run_name(trial_.metadata.name, record.run) + " ended " +
           std::string(api::to_string(*record.outcome)) + " (" + record.message +
           "); the next run starts in " +
           api::format_duration(static_cast<double>(earliest_ms - now_ms_) / 1000));
}

// Starts the next run, after the record of its intent; the first run has none (see above).
void TrialPlanner::start_next() {
  // Two runs must not write the same checkpoints. A run that was given up as lost may turn out to
  // be alive (RunObserver then stops it), and workers of an ended run may be in their grace
  // period.
  const bool one_lives = std::ranges::any_of(
      runs_, [](const Run& run) { return run.state != RunState::kExited || run.terminating; });
  if (one_lives) return wait_for_end();
  end_trial_waiting(status_.conditions, now_ms_);
  const bool first = status_.runs.empty();  // and stays so until the run is seen
  const std::int64_t run = first ? 0 : append_run(status_, spec_, now_ms_).run;
  draft_.commands.emplace_back(StartRun{run, /*confirm=*/first});
  note(EventType::kNormal, "Started",
       run_name(trial_.metadata.name, run) + how_it_starts(whole_study_, status_));
}

// An earlier run seems to have ended, but some process of it may still live.
void TrialPlanner::wait_for_end() {
  wake_at(now_ms_ + kStaleViewMs);
  const std::int64_t since_ms = status_.runs.empty() ? now_ms_ : status_.runs.back().ended_ms;
  // Always returns here if there is no record: then no time has passed since `since_ms`.
  if (now_ms_ < since_ms + kLingeringMs || is_true(status_.conditions, "Waiting")) return;
  const std::string message =
      run_name(trial_.metadata.name, status_.runs.back().run) +
      " has ended, but not all of its processes: until they have, no other run may write its "
      "checkpoints";
  set_waiting("Lingering", message);
  note(EventType::kWarning, "Waiting", message);
}

// Reports why the newest run, which exists and has not exited, waits; stops or resizes it.
void TrialPlanner::supervise(RunRecord& record, const Run& run) {
  const bool running = run.state == RunState::kRunning;
  status_.phase = running ? TrialPhase::kRunning : TrialPhase::kPending;
  if (!record.stopping) {
    report_waiting(record, run);
    report_meeting(run);
    if (spec_.stop) {
      ask_to_stop(record, Outcome::kStopped, spec_.stop->message);
    } else if (spec_.suspend) {
      ask_to_stop(record, Outcome::kStopped, "suspended");
    } else if (running) {
      check_deadlines(record, run);
    }
  }
  if (record.stopping) {
    // In each plan until the run has exited: a stop may have been lost, and another does no harm.
    draft_.commands.emplace_back(StopRun{record.run});
  } else if (run.workers != spec_.workers) {
    // Once it runs, RunObserver records the actual number, not the requested one.
    if (record.running_ms == 0) record.workers = spec_.workers;
    draft_.commands.emplace_back(ResizeRun{record.run, spec_.workers});
  }
}

// A run that waits with a reason: the condition Waiting, and an event when the reason changes.
// Ordinary waiting has no reason and is not reported. A run that is Running or has ended may wait,
// too, for its output to be read.
void TrialPlanner::report_waiting(RunRecord& record, const Run& run) {
  const bool running = run.state == RunState::kRunning;
  const bool is_slow = !running && run.reason.empty() && starts_slowly(trial_, record, now_ms_);
  const std::string reason = is_slow ? kStartsSlowly : run.reason;
  const bool is_news = update_message(record, trial_.status.runs, reason, now_ms_);
  // A Running run gives a reason if some of its workers find no place, or else if its output cannot
  // be read.
  const bool unread = running && run.unplaced_workers == 0;
  const bool waits = (!running || unread) && !record.message.empty();
  if (waits && !is_news) return;  // the stored condition stays
  if (!waits) end_trial_waiting(status_.conditions, now_ms_);
  if (waits) {
    set_waiting(unread                            ? "Unread"
                : record.message == kStartsSlowly ? kStarting
                                                  : "NotStarted",
                record.message);
  }
  if (!is_news) return;
  const std::string name = run_name(trial_.metadata.name, record.run);
  const std::string ended = run.ended_ms != 0 ? " has ended: " : " runs: ";
  if (unread) return note(EventType::kWarning, "Unread", name + ended + record.message);
  if (waits) return note(EventType::kWarning, "Waiting", name + " waits: " + record.message);
  note(EventType::kWarning, "NoPlace", name + " runs: " + record.message);  // with fewer workers
}

// After report_waiting(), for which a run that is Running waits for nothing.
void TrialPlanner::report_meeting(const Run& run) {
  const Meeting meeting = meeting_of(status_, run, now_ms_);
  if (meeting.wake_at_ms != 0) wake_at(meeting.wake_at_ms);
  if (!set_meeting(meeting, trial_.status.conditions, now_ms_, status_.conditions)) return;
  note(meeting.reason == kNoReport ? EventType::kNormal : EventType::kWarning, meeting.reason,
       run_name(trial_.metadata.name, run.id) + ": " + meeting.words);
}

void TrialPlanner::ask_to_stop(RunRecord& record, Outcome why, const std::string& message) {
  record.stopping = why;
  record.message = truncate_message(message);
  if (why == Outcome::kStopped) return;  // the Study's plan has recorded the event
  note(EventType::kWarning, std::string(api::to_string(why)),
       run_name(trial_.metadata.name, record.run) + " is stopped: " + message);
}

void TrialPlanner::check_deadlines(RunRecord& record, const Run& run) {
  const auto milliseconds = [](double seconds) {
    return static_cast<std::int64_t>(seconds * 1000);
  };
  if (run.ended_ms != 0) return;  // only its output is still read
  const auto& [timeout, heartbeat] = std::pair(study_.trial.timeout, study_.trial.heartbeat);
  if (timeout) {
    const std::int64_t deadline = record.running_ms + milliseconds(*timeout);
    if (now_ms_ >= deadline) {
      return ask_to_stop(
          record, Outcome::kTimedOut,
          "ran longer than " + api::format_duration(*timeout) + " (spec.trial.timeout)");
    }
    wake_at(deadline);
  }
  if (heartbeat) check_heartbeat(record, run, milliseconds(*heartbeat));
}

// Silence counts only up to where the output was read: the rest may hold a report.
void TrialPlanner::check_heartbeat(RunRecord& record, const Run& run, std::int64_t patience_ms) {
  const std::int64_t reported_ms = status_.report ? status_.report->at_ms : 0;
  // By our own clock if that is known, otherwise by the reporter's.
  const std::int64_t heard_ms = run.heard_ms != 0 ? run.heard_ms : reported_ms;
  const bool apart = may_lack_workers(status_, run);  // which is not the configuration's fault
  patience_ms += meeting_time_ms(status_, run);
  const std::int64_t deadline = std::max(record.running_ms, heard_ms) + patience_ms;
  if (now_ms_ < deadline) return wake_at(deadline);
  // Absent: no output is read that could be behind.
  if (run.read_ms.value_or(now_ms_) < deadline) return wake_at(now_ms_ + kWaitingMs);
  ask_to_stop(
      record, apart ? Outcome::kDisrupted : Outcome::kHung,
      "reported nothing for " + api::format_duration(static_cast<double>(patience_ms) / 1000) +
          " (spec.trial.heartbeat)" + (apart ? "; its workers may not reach each other" : ""));
}

// Ends the trial: Completed, Stopped or Failed.
void TrialPlanner::enter_phase(TrialPhase phase, const std::string& reason,
                               const std::string& message) {
  const bool failed = phase == TrialPhase::kFailed;
  status_.phase = phase;
  end_conditions(status_.conditions, failed, reason, truncate_message(message), now_ms_);
  note(failed ? EventType::kWarning : EventType::kNormal, reason, message);
}

// ---- Doing -------------------------------------------------------------------------------------

// Keeps the condition of refused actions. Only carrying them out shows whether they are still
// refused, and then the controller removes the condition. Removed here, it would come and go with
// each attempt: two writes, and each would cause the next attempt at once.
void TrialPlanner::keep_refusal() {
  const bool acts = !draft_.commands.empty() || !draft_.cleanups.empty();
  const bool is_over = api::is_terminal(status_.phase) || is_true(status_.conditions, "Waiting");
  if (!acts || is_over || !is_refused(trial_.status.conditions)) return;
  for (api::StatusCondition& condition : status_.conditions) {
    if (condition.type == "Waiting") {
      condition = *find_condition(trial_.status.conditions, "Waiting");
    }
  }
}

TrialPlan TrialPlanner::assemble() {
  TrialPlan plan;
  keep_refusal();
  // A first run is recorded only with news of it (top of this file).
  drop_idle_first_run(trial_.status, status_);
  const Run* const newest = status_.runs.empty() ? nullptr : find_run(status_.runs.back().run);
  const StatusChange change{whole_study_, trial_.status, status_, newest, !draft_.commands.empty()};
  const bool changed = is_changed(change);
  const auto later_ms = changed ? deferred_until(change, now_ms_) : std::nullopt;
  if (later_ms) wake_at(*later_ms);
  const bool write = changed && !later_ms;
  plan.wake_at_ms = draft_.wake_at_ms;
  if (write) plan.actions.emplace_back(UpdateTrialStatus{std::move(status_)});
  // In this order (plan.h): the status above has the result of each run that is deleted, the intent
  // of each start and the cause of each stop.
  for (auto* actions : {&draft_.cleanups, &draft_.commands}) {
    for (TrialAction& action : *actions) plan.actions.push_back(std::move(action));
  }
  for (Note& event : draft_.notes) plan.actions.emplace_back(std::move(event));
  return plan;
}

}  // namespace

TrialPlan plan_trial(const TrialView& view, std::int64_t now_ms) {
  return TrialPlanner(view, now_ms).plan();
}

}  // namespace fettle::core
