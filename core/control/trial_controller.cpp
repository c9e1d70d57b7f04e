// Writes carry the resourceVersion of the object that was planned, or of this reconcile's last
// write.
#include "core/control/trial_controller.h"

#include <utility>
#include <variant>

#include "core/conditions.h"
#include "core/control/refusals.h"
#include "core/facts/run_records.h"
#include "core/names.h"
#include "core/trial/trial_plan.h"
#include "core/trial/trial_waiting.h"

namespace fettle::control {

namespace {

// The object; absent if it is gone.
template <class T>
Result<std::optional<T>> if_there(Result<T> object) {
  if (object.ok()) return std::optional<T>(std::move(object).value());
  if (object.error().code == ErrorCode::kNotFound) return std::optional<T>();
  return object.error();
}

api::StatusCondition refused_with(const std::string& message) {
  return {.type = "Waiting", .status = true, .reason = core::kRefused, .message = message};
}

// The condition Waiting that follows from the record of the newest run.
api::StatusCondition waiting_of(const api::Trial& trial) {
  const std::vector<api::RunRecord>& runs = trial.status.runs;
  const bool waits = trial.status.phase == api::TrialPhase::kPending && !runs.empty() &&
                     !runs.back().outcome && !runs.back().message.empty();
  return {.type = "Waiting",
          .status = waits,
          .reason = waits ? "NotStarted" : "Accepted",
          .message = waits ? runs.back().message : "what was refused has been accepted"};
}

// Reports a run that can never start as it is written as started and failed; or as disrupted if its
// name is taken, because the next run has another name.
core::Run refusal(std::int64_t run, const api::Trial& trial, const Error& why,
                  std::int64_t now_ms) {
  core::Run refused;
  refused.id = run;
  refused.workers = trial.spec.workers;
  refused.state = core::RunState::kExited;
  const bool is_taken = why.code == ErrorCode::kAlreadyExists;
  refused.outcome = is_taken ? api::Outcome::kDisrupted : api::Outcome::kFailed;
  refused.reason = why.message;
  refused.started_ms = now_ms;
  refused.ended_ms = now_ms;
  return refused;
}

}  // namespace

Result<ReconcileResult> TrialController::reconcile(const Key& key) {
  FETTLE_ASSIGN(const auto stored, if_there(store_.get_trial(key)));
  if (!stored) {
    FETTLE_TRY(runs_.remove_orphans(key.ns, key.name));
    return ReconcileResult{};
  }
  Result<ReconcileResult> result = reconcile_found(**stored);
  if (result.ok()) result->said_refused = core::is_refused((*stored)->status.conditions);
  return result;
}

Result<ReconcileResult> TrialController::reconcile_found(const api::Trial& trial) {
  FETTLE_ASSIGN(const auto study,
                if_there(store_.get_study({trial.metadata.ns, trial.spec.study})));
  if (!study || !core::belongs_to(trial, *study)) return reconcile_other(trial);
  FETTLE_ASSIGN(std::vector<core::Run> runs, runs_.observe(trial));
  Pass pass{*study, trial, {}};
  Result<ReconcileResult> result = carry_out(pass, runs);
  // After a refusal the next reconcile asks: the write below brings it about.
  if (result.ok() && pass.refused.empty()) FETTLE_TRY(runs_.check_progress(pass.trial));
  if (!result.ok() || pass.refused.empty()) return result;
  // A run that could not be started never exists, so no notice will follow: its failure is planned
  // at once. If a further run is refused now, the write that recorded it brings a notice.
  runs.insert(runs.end(), pass.refused.begin(), pass.refused.end());
  return carry_out(pass, runs);
}

// The garbage collector deletes most trials of a deleted Study. Trials that were left behind on
// purpose (kubectl delete --cascade=orphan) have no owner any more, and are ended here.
Result<ReconcileResult> TrialController::reconcile_other(const api::Trial& trial) {
  if (!core::study_uid_of(trial).empty()) return ReconcileResult{};
  FETTLE_ASSIGN(const std::vector<core::Run> runs, runs_.observe(trial));
  const api::Study none;
  Pass pass{none, trial, {}};
  return execute(core::plan_orphan(trial, runs, clock_.now_ms()), pass);
}

Result<ReconcileResult> TrialController::carry_out(Pass& pass, const std::vector<core::Run>& runs) {
  const api::Trial seen = pass.trial;
  return execute(core::plan_trial({pass.study, seen, runs}, clock_.now_ms()), pass);
}

Result<ReconcileResult> TrialController::execute(const core::TrialPlan& plan, Pass& pass) {
  ReconcileResult result{.actions = 0, .wake_at_ms = plan.wake_at_ms};
  for (const core::TrialAction& action : plan.actions) {
    FETTLE_TRY(execute(action, pass));
    ++result.actions;
  }
  return result;
}

Status TrialController::execute(const core::TrialAction& action, Pass& pass) {
  if (const auto* update = std::get_if<core::UpdateTrialStatus>(&action)) {
    api::Trial next = pass.trial;
    next.status = update->status;
    FETTLE_ASSIGN(pass.trial, store(next, pass));
    return success();
  }
  const api::Trial& trial = pass.trial;
  if (const auto* begin = std::get_if<core::StartRun>(&action)) return start(*begin, pass);
  if (const auto* resize = std::get_if<core::ResizeRun>(&action)) {
    return runs_.resize(trial, resize->run, resize->workers);
  }
  if (const auto* stop = std::get_if<core::StopRun>(&action)) return runs_.stop(trial, stop->run);
  if (const auto* gone = std::get_if<core::DeleteRun>(&action)) {
    return runs_.remove(trial, gone->run);
  }
  note(std::get<core::Note>(action).event, trial);
  return success();
}

// The end of a trial is a fact of its Study; a trial that a Study left behind has none.
Result<api::Trial> TrialController::store(const api::Trial& next, const Pass& pass) {
  const bool ends =
      api::is_terminal(next.status.phase) && !api::is_terminal(pass.trial.status.phase);
  const bool has_study = !pass.study.metadata.name.empty();
  return ends && has_study ? studies_.store_end(pass.study, next)
                           : store_.update_trial_status(next);
}

// A run that can never start counts as one that failed, by our own checks alone (runs.h).
Status TrialController::start(const core::StartRun& action, Pass& pass) {
  // No status write came before that would have failed on a stale view: this does.
  if (action.confirm) FETTLE_TRY(store_.confirm(pass.trial));
  Status started = runs_.start(pass.study, pass.trial, action.run);
  if (started.ok()) return started;
  const Error& error = started.error();
  if (error.code == ErrorCode::kAlreadyExists) {
    note({core::EventType::kWarning, "NameCollision", error.message}, pass.trial);
  } else if (error.code != ErrorCode::kInvalid) {
    return started;
  }
  pass.refused.push_back(refusal(action.run, pass.trial, error, clock_.now_ms()));
  return success();
}

Status TrialController::set_refused(const Key& key, const std::string& words) {
  FETTLE_ASSIGN(const auto stored, if_there(store_.get_trial(key)));
  if (!stored || api::is_terminal((*stored)->status.phase)) return success();
  api::Trial next = **stored;
  std::vector<api::StatusCondition>& conditions = next.status.conditions;
  const api::StatusCondition* const said = core::find_condition(conditions, "Waiting");
  const bool was = core::is_refused(conditions);
  const std::string message = core::truncate_message(words);
  const bool is_as_wanted = words.empty() ? !was : was && same_reason(said->message, message);
  if (is_as_wanted) return success();
  // "": the condition again says what the record of the run does.
  core::set_condition(conditions, words.empty() ? waiting_of(next) : refused_with(message),
                      clock_.now_ms());
  FETTLE_TRY(store_.update_trial_status(next));
  if (!words.empty() && !was) note({core::EventType::kWarning, core::kRefused, message}, next);
  return success();
}

void TrialController::note(const core::EventNote& event, const api::Trial& trial) {
  const Change about{Kind::kTrial, {trial.metadata.ns, trial.metadata.name}, trial.spec.study};
  record_event(store_, observer_, about, event, clock_.now_ms());
}

}  // namespace fettle::control
