#include "runtime/local/run/process_runs.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <tuple>

#include "api/resolve.h"
#include "base/file.h"
#include "base/thread.h"
#include "control/clock.h"
#include "core/names.h"
#include "runtime/local/run/fitting.h"
#include "runtime/local/run/recorded_run.h"

namespace fettle::local {
namespace {

constexpr auto kAskInterval = std::chrono::milliseconds(250);  // while a run waits for room
constexpr auto kKeepInterval = std::chrono::minutes(10);       // while no run waits
constexpr std::int64_t kRefusedPauseMs = 1'000;                // after an error that may pass

std::int64_t now_ms() { return control::SystemClock().now_ms(); }

constexpr const char* kNoRoom = "no room on this machine yet";

SupervisorCommand command_to(SupervisorCommand::Kind kind,
                             const std::pair<std::string, std::int64_t>& run = {}) {
  SupervisorCommand command;
  command.kind = kind;
  std::tie(command.trial, command.run) = run;
  return command;
}

}  // namespace

void ProcessRuns::Known::set_reason(const Shortage& shortage) {
  if (stable_reason == shortage.stable) return;
  stable_reason = shortage.stable;
  run.reason = shortage.text();
}

void ProcessRuns::Known::clear_reason() {
  stable_reason.clear();
  run.reason.clear();
}

ProcessRuns::ProcessRuns(Layout layout, std::string trainer,
                         std::unique_ptr<SupervisorClient> supervisor,
                         std::unique_ptr<Claims> claims)
    : layout_(std::move(layout)),
      trainer_(std::move(trainer)),
      claims_(std::move(claims)),
      supervisor_(std::move(supervisor)) {
  const Status begun = start_threads();
  // A supervisor that is lost at once may already have reported it.
  const std::lock_guard<std::mutex> guard(mutex_);
  if (!begun.ok() && failure_.empty()) failure_ = begun.error().message;
}

Status ProcessRuns::start_threads() {
  FETTLE_TRY(supervisor_->listen([this](const SupervisorEvent& event) { on_event(event); },
                                 [this](const std::string& reason) { on_lost(reason); }));
  FETTLE_ASSIGN(starter_, start_thread([this] { start_waiting(); }));
  return success();
}

ProcessRuns::~ProcessRuns() { close(); }

// ---- Starting ----------------------------------------------------------------------------------

Status ProcessRuns::start(const api::Study& study, const api::Trial& trial, std::int64_t run) {
  const RunKey key{trial.metadata.name, run};
  const std::lock_guard<std::mutex> starting(start_mutex_);
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (runs_.count(key) > 0) return success();
    if (closing_) return Error{ErrorCode::kUnavailable, "fettle run is shutting down"};
    if (!failure_.empty()) return io_error(failure_ + "; run fettle run again to resume");
  }
  // A run that can never start is refused at once, room or not.
  FETTLE_ASSIGN(RunRequest request, request_run(study, trial, run, layout_, trainer_));
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    Known& known = runs_[key];
    known.run.id = run;
    known.run.workers = request.workers();
    known.request = std::make_shared<const RunRequest>(std::move(request));
    queue_.push_back(key);
  }
  Status begun = begin(key);
  if (begun.ok()) return success();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (begun.error().code != ErrorCode::kUnavailable) {
      leave_queue(key);
      runs_.erase(key);
      return begun;
    }
    retry_ = true;  // start_waiting() sleeps long while no run waits
    room_made_.notify_all();
  }
  notify(key.first);
  return success();
}

// Starts a waiting run. kUnavailable: there is no room, so it keeps waiting; after another error it
// has no claim any more, and the caller decides. Needs start_mutex_.
Status ProcessRuns::begin(const RunKey& key) {
  std::shared_ptr<const RunRequest> request;
  std::int64_t living = 0;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = runs_.find(key);
    if (found == runs_.end()) return success();
    request = found->second.request;
    living = std::ranges::count_if(
        runs_, [](const auto& entry) { return entry.second.run.state != core::RunState::kExited; });
    living -= std::ssize(queue_);  // waiting runs have no process and no open files
  }
  const std::string name = core::run_name(key.first, key.second);
  Grant granted = claims_->take(name, need_of(request->study, request->workers()));
  if (granted.ok() && living >= claims_->room().runs) {
    claims_->release(name);
    granted.shortage.stable = "the limit on open files (ulimit -Hn) is enough for " +
                              std::to_string(living) + " trials at once";
  }
  if (!granted.ok()) {
    wait(key, granted.shortage, 0);
    return Error{ErrorCode::kUnavailable, granted.shortage.text()};
  }
  Result<SupervisorCommand> command =
      prepare_run(*request, layout_, directory_, granted.gpus, claims_->room().gpus_by_pci);
  if (!command.ok()) {
    claims_->release(name);
    return command.error();
  }
  command->claim_file = claims_->file(name);
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    Known& known = runs_[key];
    known.gpus = granted.gpus;
    known.claimed_workers = request->workers();
    known.run.pod_uid = command->pod_uid;
    known.clear_reason();
    leave_queue(key);
  }
  Status sent = supervisor_->send(*command);
  if (!sent.ok()) claims_->release(name);
  return sent;
}

// ---- Waiting -----------------------------------------------------------------------------------

// Keeps the run in the queue, or appends it again. Needs start_mutex_.
void ProcessRuns::wait(const RunKey& key, const Shortage& shortage, std::int64_t pause_ms) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = runs_.find(key);
  if (found == runs_.end()) return;
  Known& known = found->second;
  known.set_reason(shortage.in(kNoRoom));
  known.try_at_ms = now_ms() + pause_ms;
  if (std::ranges::find(queue_, key) == queue_.end()) queue_.push_back(key);
}

// Needs mutex_.
void ProcessRuns::leave_queue(const RunKey& key) { std::erase(queue_, key); }

// The thread that starts waiting runs: as soon as a run of this Session has ended, and otherwise
// from time to time, since other Sessions send no notice.
void ProcessRuns::start_waiting() {
  std::int64_t touched_ms = now_ms();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closing_) {
    const auto pause = queue_.empty() ? kKeepInterval : kAskInterval;
    room_made_.wait_for(lock, pause, [this] { return closing_ || retry_; });
    retry_ = false;
    if (closing_) return;
    lock.unlock();
    serve_queue();
    if (now_ms() > touched_ms + kStillHereMs / 4) {
      claims_->touch();
      touched_ms = now_ms();
    }
    lock.lock();
  }
}

// Asks for each waiting run; there are no more than the machine could run at once (capacity). The
// claims decide which comes first.
void ProcessRuns::serve_queue() {
  const std::lock_guard<std::mutex> starting(start_mutex_);
  std::vector<RunKey> waiting;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (closing_ || !failure_.empty()) return;
    std::ranges::copy_if(queue_, std::back_inserter(waiting),
                         [this](const RunKey& key) { return runs_[key].try_at_ms <= now_ms(); });
  }
  for (const RunKey& key : waiting) {
    const Status begun = begin(key);
    if (!begun.ok() && begun.error().code == ErrorCode::kUnavailable) continue;
    if (!begun.ok() && begun.error().code != ErrorCode::kInvalid) {
      // A fault of the system, such as a full disk, may pass.
      wait(key, {begun.error().message, ""}, kRefusedPauseMs);
      continue;
    }
    if (!begun.ok()) end_unbegun(key, api::Outcome::kFailed, begun.error().message);
    notify(key.first);
  }
}

// Needs start_mutex_.
void ProcessRuns::end_unbegun(const RunKey& key, api::Outcome outcome, const std::string& reason) {
  claims_->release(core::run_name(key.first, key.second));
  const std::lock_guard<std::mutex> guard(mutex_);
  leave_queue(key);
  const auto found = runs_.find(key);
  if (found == runs_.end()) return;
  found->second.run.state = core::RunState::kExited;
  found->second.run.outcome = outcome;
  found->second.run.reason = reason;
  found->second.request.reset();
}

// Waiting runs have not begun, so nothing is recorded about them.
void ProcessRuns::drop_queue() {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const RunKey& key : queue_) {
    claims_->release(core::run_name(key.first, key.second));
    runs_.erase(key);
  }
  queue_.clear();
}

// No run begins any more.
void ProcessRuns::close() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    closing_ = true;
    room_made_.notify_all();
  }
  if (starter_.joinable()) starter_.join();
  const std::lock_guard<std::mutex> starting(start_mutex_);
  drop_queue();
}

// ---- Changing ----------------------------------------------------------------------------------

Status ProcessRuns::resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) {
  const RunKey key{trial.metadata.name, run};
  const std::lock_guard<std::mutex> starting(start_mutex_);
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = runs_.find(key);
    if (found == runs_.end()) return success();
    if (std::ranges::find(queue_, key) != queue_.end()) {
      FETTLE_ASSIGN(RunRequest request,
                    request_run(found->second.request->study, trial, run, layout_, trainer_));
      found->second.request = std::make_shared<const RunRequest>(std::move(request));
      found->second.run.workers = workers;
      return success();
    }
  }
  Shortage shortage;
  FETTLE_TRY(grow(key, workers, shortage));
  if (!shortage.empty()) {
    set_unplaced(key, workers, shortage);
    return success();
  }
  SupervisorCommand command = command_to(SupervisorCommand::Kind::kResize, key);
  command.worker_count = workers;
  FETTLE_TRY(supervisor_->send(command));
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = runs_.find(key);
  if (found == runs_.end()) return success();
  Known& known = found->second;
  known.run.workers = workers;
  if (known.run.unplaced_workers > 0) known.clear_reason();
  known.run.unplaced_workers = 0;
  return success();
}

// Records that there is no room for more workers. The run continues with its present workers, and
// the caller may ask again.
void ProcessRuns::set_unplaced(const RunKey& key, std::int64_t workers, const Shortage& shortage) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = runs_.find(key);
  // A run that has ended meanwhile keeps the reason of its end.
  if (found == runs_.end() || found->second.run.state == core::RunState::kExited) return;
  core::Run& run = found->second.run;
  run.unplaced_workers = std::max<std::int64_t>(0, workers - run.workers);
  found->second.set_reason(shortage);
}

// Claims the resources of more workers, unless some are missing or an earlier run waits for them.
// Needs start_mutex_.
Status ProcessRuns::grow(const RunKey& key, std::int64_t workers, Shortage& shortage) {
  Known known;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    known = runs_[key];
  }
  if (!known.request || known.run.state == core::RunState::kExited) return success();
  const api::TrialTemplate& trial = known.request->study.spec.trial;
  const bool is_elastic = trial.workers.min < trial.workers.max;
  const std::int64_t each = api::whole_gpus(trial);  // GPUs of a worker, at least 1
  // Not the running workers: after a run has shrunk it still holds the claims of the others.
  const std::int64_t has = trial.gpu ? std::ssize(known.gpus) / each : known.claimed_workers;
  const std::int64_t wanted = std::min(workers, trial.workers.max);
  if (!is_elastic) return success();
  if (wanted > has) {
    const Grant more = claims_->add(core::run_name(key.first, key.second),
                                    need_of(known.request->study, wanted - has));
    if (!more.ok()) {
      shortage = more.shortage.in("trial " + key.first + " cannot have " + std::to_string(wanted) +
                                  " workers now");
      return success();
    }
    known.gpus.insert(known.gpus.end(), more.gpus.begin(), more.gpus.end());
    const std::lock_guard<std::mutex> guard(mutex_);
    if (const auto found = runs_.find(key); found != runs_.end()) {
      found->second.gpus = known.gpus;
      found->second.claimed_workers = wanted;
    }
  }
  if (known.gpus.empty()) return success();
  // Always: an earlier call may have claimed the GPUs and failed to write them.
  return write_gpus(layout_.run_directory(key.first, key.second), known.gpus, each);
}

// A run that still waits is stopped before it began.
Status ProcessRuns::stop(const api::Trial& trial, std::int64_t run) {
  const RunKey key{trial.metadata.name, run};
  const std::lock_guard<std::mutex> starting(start_mutex_);
  bool waited = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = runs_.find(key);
    if (found == runs_.end() || found->second.run.state == core::RunState::kExited) {
      return success();
    }
    waited = std::ranges::find(queue_, key) != queue_.end();
  }
  if (waited) {
    end_unbegun(key, api::Outcome::kStopped, "stopped before it began");
    notify(key.first);
    return success();
  }
  return supervisor_->send(command_to(SupervisorCommand::Kind::kStop, key));
}

Status ProcessRuns::remove(const api::Trial& trial, std::int64_t run) {
  claims_->release(core::run_name(trial.metadata.name, run));
  const std::lock_guard<std::mutex> guard(mutex_);
  leave_queue({trial.metadata.name, run});
  runs_.erase({trial.metadata.name, run});
  return success();
}

// ---- Observing ---------------------------------------------------------------------------------

// Runs of this process come from memory. Runs of an earlier process are read from the disk, but
// only if the trial still waits for their outcome: all others are recorded and forgotten.
Result<std::vector<core::Run>> ProcessRuns::observe(const api::Trial& trial) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string& name = trial.metadata.name;
  for (const api::RunRecord& record : trial.status.runs) {
    const RunKey key{name, record.run};
    if (record.outcome || runs_.count(key) > 0) continue;
    if (auto recalled = recall_run(layout_, trial, record.run, how_to_read_))
      runs_[key].run = std::move(*recalled);
  }
  // The first run is started without a record of its own (core/trial_plan.cpp). After a crash its
  // trial file shows that it was started.
  const bool unrecorded = trial.status.runs.empty() && runs_.count({name, 0}) == 0;
  if (unrecorded && was_prepared(layout_, trial, 0)) {
    if (auto recalled = recall_run(layout_, trial, 0, how_to_read_))
      runs_[{name, 0}].run = std::move(*recalled);
  }
  std::vector<core::Run> runs;
  const RunKey first{name, 0};
  for (auto it = runs_.lower_bound(first); it != runs_.end() && it->first.first == name; ++it) {
    runs.push_back(it->second.run);
    const bool waits = std::ranges::find(queue_, it->first) != queue_.end();
    if (waits) runs.back().unplaced_workers = runs.back().workers;
  }
  return runs;
}

// The capacity of the whole machine: while others use it, new trials wait.
core::Capacity ProcessRuns::capacity(const api::Study& study) {
  return {fitting_trials(study, claims_->room()).trials};
}

void ProcessRuns::watch(std::function<void(const std::string& trial)> listener) {
  const std::lock_guard<std::mutex> guard(mutex_);
  listener_ = std::move(listener);
}

void ProcessRuns::shutdown() {
  close();
  // A supervisor that cannot be reached has already exited.
  (void)supervisor_->send(command_to(SupervisorCommand::Kind::kShutdown));
  supervisor_->join();
}

void ProcessRuns::kill() { (void)supervisor_->send(command_to(SupervisorCommand::Kind::kKill)); }

std::string ProcessRuns::failure() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return failure_;
}

void ProcessRuns::on_event(const SupervisorEvent& event) {
  const RunKey key{event.trial, event.run};
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = runs_.find(key);
    if (found == runs_.end()) return;
    take(event, key, found->second);
  }
  notify(event.trial);
}

// Needs mutex_.
void ProcessRuns::take(const SupervisorEvent& event, const RunKey& key, Known& known) {
  core::Run& run = known.run;
  const std::string name = core::run_name(key.first, key.second);
  if (event.kind == SupervisorEvent::Kind::kStarted) {
    run.state = core::RunState::kRunning;
    run.queued = false;
    known.clear_reason();
    run.started_ms = event.started_ms;
    claims_->hand_over(name);
  }
  if (event.kind == SupervisorEvent::Kind::kRefused) {
    // It has not begun, so its trial file is removed.
    ::unlink(layout_.trial_file(key.first, key.second).c_str());
    claims_->release(name);
    // If it was reported running already, the effect is that of a queue that preempts it
    // (core/plan.h).
    run.queued = run.state == core::RunState::kRunning;
    run.state = core::RunState::kPending;
    run.started_ms = 0;
    known.set_reason(Shortage{event.reason, ""}.in(kNoRoom));
    known.try_at_ms = now_ms() + kRefusedPauseMs;
    if (closing_) {
      runs_.erase(key);
      return;
    }
    queue_.push_back(key);
  }
  if (event.report) run.report = event.report;
  if (event.outcome) {
    take_outcome(*event.outcome, run);
    known.request.reset();
    claims_->release(name);
  }
  // An ended run makes room; a refused run, which has a reason, waits for it.
  retry_ = retry_ || event.outcome.has_value() || !event.reason.empty();
  if (retry_) room_made_.notify_all();
}

void ProcessRuns::on_lost(const std::string& reason) {
  std::vector<std::string> changed;
  const std::lock_guard<std::mutex> starting(start_mutex_);
  drop_queue();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    failure_ = closing_ ? "fettle run is shutting down" : reason;
    for (auto& [key, known] : runs_) {
      if (known.run.state == core::RunState::kExited) continue;
      known.run.state = core::RunState::kExited;
      known.run.outcome = api::Outcome::kDisrupted;
      known.run.reason = reason;
      known.request.reset();
      changed.push_back(key.first);
      claims_->release(core::run_name(key.first, key.second));
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
