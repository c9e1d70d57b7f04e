#include "runtime/local/process_runs.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "api/resolve.h"
#include "api/trial_file.h"
#include "base/file.h"
#include "control/clock.h"
#include "core/names.h"
#include "machine/gpu_list.h"
#include "machine/usable.h"
#include "runtime/local/gpus.h"
#include "runtime/local/outcome_file.h"
#include "runtime/local/run_command.h"
#include "runtime/local/workers.h"
#include "runtime/trial_file.h"

namespace fettle::local {
namespace {

constexpr double kMaxGraceSeconds = 7 * 24 * 3600.0;

void take_outcome(const RunOutcome& outcome, core::Run& run) {
  run.state = core::RunState::kExited;
  run.outcome = outcome.outcome;
  run.exit_code = outcome.exit_code;
  run.reason = outcome.message;
  run.started_ms = outcome.started_ms;
  run.ended_ms = outcome.ended_ms;
  if (outcome.report) run.report = outcome.report;
}

// torchrun and its like start a process on each, as fettle-trainer does.
void give_gpus(const std::vector<std::string>& gpus, Variables& worker) {
  worker.emplace_back("CUDA_VISIBLE_DEVICES", machine::join_gpus(gpus));
  worker.emplace_back("PET_NPROC_PER_NODE", std::to_string(gpus.size()));
}

std::int64_t workers_of(const api::Trial& trial) {
  return std::max<std::int64_t>(trial.spec.workers, 1);
}

}  // namespace

ProcessRuns::ProcessRuns(Layout layout, std::string trainer,
                         std::unique_ptr<SupervisorClient> supervisor)
    : layout_(std::move(layout)), trainer_(std::move(trainer)), supervisor_(std::move(supervisor)) {
  supervisor_->listen([this](const SupervisorEvent& event) { on_event(event); },
                      [this](const std::string& reason) { on_lost(reason); });
}

ProcessRuns::~ProcessRuns() = default;

Status ProcessRuns::start(const api::Study& study, const api::Trial& trial, std::int64_t run) {
  const RunKey key{trial.metadata.name, run};
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (runs_.count(key) > 0) return success();
    if (closing_) return Error{ErrorCode::kUnavailable, "fettle run is shutting down"};
    if (!failure_.empty()) return io_error(failure_ + "; run fettle run again to go on");
  }
  SupervisorCommand command;
  FETTLE_TRY(prepare(study, trial, run, command));
  core::Run started;
  started.id = run;
  started.workers = workers_of(trial);
  started.pod_uid = command.pod_uid;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    FETTLE_TRY(take_gpus(study, key, command));
    runs_[key] = started;
  }
  Status sent = supervisor_->send(command);
  if (!sent.ok()) {
    const std::lock_guard<std::mutex> guard(mutex_);
    runs_.erase(key);
    gpus_.erase(key);
  }
  return sent;
}

// Whole GPUs, none of which another living run has. capacity() sees to it that there are enough.
Status ProcessRuns::take_gpus(const api::Study& study, const RunKey& key,
                              SupervisorCommand& command) {
  if (!study.spec.trial.gpu) return success();
  std::vector<std::string> taken;
  for (const auto& [holder, held] : gpus_) {
    const auto run = runs_.find(holder);
    if (run == runs_.end() || run->second.state == core::RunState::kExited) continue;
    taken.insert(taken.end(), held.begin(), held.end());
  }
  const auto each = static_cast<std::size_t>(api::whole_gpus(study.spec.trial));
  // Of the workers that may come later, as many as there are GPUs for.
  std::size_t workers = std::max<std::size_t>(command.workers.size(), 1);
  auto chosen = choose_gpus(visible_gpus(), taken, each * workers);
  for (; !chosen && static_cast<std::int64_t>(workers) > command.worker_count;) {
    chosen = choose_gpus(visible_gpus(), taken, each * --workers);
  }
  if (!chosen) return Error{ErrorCode::kUnavailable, "all GPUs of this machine are in use"};
  command.workers.resize(std::min(workers, command.workers.size()));
  if (command.workers.empty()) give_gpus(*chosen, command.environment);
  auto next = chosen->begin();
  for (Variables& worker : command.workers) {
    const auto end = next + static_cast<std::ptrdiff_t>(each);
    give_gpus({next, end}, worker);
    next = end;
  }
  gpus_[key] = *chosen;
  return success();
}

// Everything a run needs on disk, and the command that starts it.
Status ProcessRuns::prepare(const api::Study& study, const api::Trial& trial, std::int64_t run,
                            SupervisorCommand& command) const {
  FETTLE_ASSIGN(RunCommand what, make_command(study, trial, run, layout_, trainer_));
  FETTLE_ASSIGN(api::TrialFile file,
                runtime::make_trial_file(study, trial, run, layout_.checkpoint_root()));
  const std::int64_t workers = workers_of(trial);
  file.workers = workers;
  command.worker_count = workers;
  command.open = file.least_workers.has_value();
  command.least_workers = file.least_workers.value_or(workers);
  const std::int64_t most =
      command.open ? std::max(workers, study.spec.trial.workers.max) : workers;
  if (most > 1) {
    FETTLE_ASSIGN(command.workers, worker_variables(workers, most));
  }
  const std::string& name = trial.metadata.name;
  FETTLE_TRY(make_directories(layout_.run_directory(name, run)));
  FETTLE_TRY(make_directories(file.checkpoints.directory));
  // An earlier Study of this name may have left one.
  ::unlink(layout_.outcome_file(name, run).c_str());
  FETTLE_TRY(reserve_outcome(layout_.run_directory(name, run)));
  FETTLE_TRY(write_file(layout_.trial_file(name, run), api::write_trial_file(file).dump(2) + "\n"));
  command.kind = SupervisorCommand::Kind::kStart;
  command.trial = name;
  command.run = run;
  command.pod_uid = pod_uid_of(trial, run);
  command.run_directory = layout_.run_directory(name, run);
  command.arguments = std::move(what.arguments);
  command.environment = std::move(what.environment);
  command.directory = std::move(what.directory);
  command.memory_limit = what.memory_limit;
  const double grace = std::clamp(study.spec.trial.grace_period, 0.0, kMaxGraceSeconds);
  command.grace_ms = std::llround(grace * 1000);
  if (study.spec.trial.metrics) command.metrics_regex = study.spec.trial.metrics->regex;
  command.rungs = file.rungs;
  command.objectives = study.spec.objectives;
  return success();
}

Status ProcessRuns::resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) {
  SupervisorCommand command;
  command.kind = SupervisorCommand::Kind::kResize;
  command.trial = trial.metadata.name;
  command.run = run;
  command.worker_count = workers;
  FETTLE_TRY(supervisor_->send(command));
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = runs_.find({trial.metadata.name, run});
  if (found != runs_.end()) found->second.workers = workers;
  return success();
}

Status ProcessRuns::stop(const api::Trial& trial, std::int64_t run) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = runs_.find({trial.metadata.name, run});
    if (found == runs_.end() || found->second.state == core::RunState::kExited) return success();
  }
  SupervisorCommand command;
  command.kind = SupervisorCommand::Kind::kStop;
  command.trial = trial.metadata.name;
  command.run = run;
  return supervisor_->send(command);
}

Status ProcessRuns::remove(const api::Trial& trial, std::int64_t run) {
  const std::lock_guard<std::mutex> guard(mutex_);
  runs_.erase({trial.metadata.name, run});
  gpus_.erase({trial.metadata.name, run});
  return success();
}

// Runs of this process come from memory. Those of an earlier one are looked up on disk, but only
// where the trial still waits for their outcome: all others are recorded and forgotten.
Result<std::vector<core::Run>> ProcessRuns::observe(const api::Trial& trial) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string& name = trial.metadata.name;
  for (const api::RunRecord& record : trial.status.runs) {
    const RunKey key{name, record.run};
    if (record.outcome || runs_.count(key) > 0) continue;
    std::error_code code;
    if (!std::filesystem::exists(layout_.trial_file(name, record.run), code)) continue;
    runs_[key] = recall(trial, record.run);
  }
  const bool unrecorded = trial.status.runs.empty() && runs_.count({name, 0}) == 0;
  if (unrecorded && was_prepared(trial, 0)) runs_[{name, 0}] = recall(trial, 0);
  std::vector<core::Run> runs;
  const RunKey first{name, 0};
  for (auto it = runs_.lower_bound(first); it != runs_.end() && it->first.first == name; ++it) {
    runs.push_back(it->second);
  }
  return runs;
}

// Whether start() got as far as writing the trial file of a run that no record tells of. One of an
// equally named trial of a Study that was deleted since does not count.
bool ProcessRuns::was_prepared(const api::Trial& trial, std::int64_t run) const {
  const auto uid = trial.metadata.labels.find(core::kStudyUidLabel);
  const Result<std::string> text = read_file(layout_.trial_file(trial.metadata.name, run));
  if (!text.ok() || uid == trial.metadata.labels.end()) return false;
  const Result<Json> document = parse_json(*text);
  if (!document.ok()) return false;
  const Result<api::TrialFile> file = api::read_trial_file(*document);
  return file.ok() && file->study_uid == uid->second;
}

core::Run ProcessRuns::recall(const api::Trial& trial, std::int64_t run) const {
  core::Run recalled;
  recalled.id = run;
  recalled.pod_uid = pod_uid_of(trial, run);
  recalled.state = core::RunState::kExited;
  recalled.outcome = api::Outcome::kDisrupted;
  recalled.reason = "fettle run and its supervisor were killed while it ran";
  release_outcome(layout_.run_directory(trial.metadata.name, run));
  const Result<std::string> text =
      read_file(layout_.outcome_file(trial.metadata.name, run), kMaxMessageBytes);
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

core::Capacity ProcessRuns::capacity(const api::Study& study) {
  const auto workers = static_cast<double>(study.spec.trial.workers.min);
  double fitting = std::floor(machine::usable_cores() / (cores_per_trial(study) * workers));
  if (study.spec.trial.gpu) {
    const double count = workers * static_cast<double>(api::whole_gpus(study.spec.trial));
    fitting = std::min(fitting, std::floor(static_cast<double>(visible_gpus().size()) / count));
  }
  return {static_cast<std::int64_t>(std::max(1.0, fitting))};
}

void ProcessRuns::watch(std::function<void(const std::string& trial)> listener) {
  const std::lock_guard<std::mutex> guard(mutex_);
  listener_ = std::move(listener);
}

void ProcessRuns::shutdown() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    closing_ = true;
  }
  SupervisorCommand command;
  command.kind = SupervisorCommand::Kind::kShutdown;
  // If it cannot be reached it has gone, and that is what was wanted.
  (void)supervisor_->send(command);
  supervisor_->join();
}

void ProcessRuns::kill() {
  SupervisorCommand command;
  command.kind = SupervisorCommand::Kind::kKill;
  (void)supervisor_->send(command);
}

std::string ProcessRuns::failure() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return failure_;
}

void ProcessRuns::on_event(const SupervisorEvent& event) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = runs_.find({event.trial, event.run});
    if (found == runs_.end()) return;
    take(event, found->second);
  }
  notify(event.trial);
}

void ProcessRuns::take(const SupervisorEvent& event, core::Run& run) const {
  if (event.kind == SupervisorEvent::Kind::kStarted) {
    run.state = core::RunState::kRunning;
    run.reason.clear();
    run.started_ms = event.started_ms;
  }
  if (event.report) run.report = event.report;
  if (event.outcome) take_outcome(*event.outcome, run);
}

void ProcessRuns::on_lost(const std::string& reason) {
  std::vector<std::string> changed;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    failure_ = closing_ ? "fettle run is shutting down" : reason;
    for (auto& [key, run] : runs_) {
      if (run.state == core::RunState::kExited) continue;
      run.state = core::RunState::kExited;
      run.outcome = api::Outcome::kDisrupted;
      run.reason = reason;
      changed.push_back(key.first);
    }
  }
  for (const std::string& trial : changed) notify(trial);
}

void ProcessRuns::notify(const std::string& trial) {
  std::function<void(const std::string&)> listener;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    listener = listener_;
  }
  if (listener) listener(trial);
}

}  // namespace fettle::local
