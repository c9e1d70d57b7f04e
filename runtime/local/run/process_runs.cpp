#include "runtime/local/run/process_runs.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "api/study/resolve.h"
#include "base/file.h"
#include "runtime/local/run/fitting.h"
#include "runtime/local/run/prepare_run.h"

namespace fettle::local {
namespace {

constexpr auto kRefusedPause = std::chrono::milliseconds(1000);  // after an error that may pass
constexpr const char* kNoRoom = "no room on this machine yet";
constexpr const char* kShuttingDown = "fettle run is shutting down";

SupervisorCommand command_to(SupervisorCommand::Kind kind, const RunKey& run = {}) {
  SupervisorCommand command;
  command.kind = kind;
  std::tie(command.trial, command.run) = run;
  return command;
}

}  // namespace

ProcessRuns::ProcessRuns(ProcessRunsOptions options, std::unique_ptr<SupervisorClient> supervisor,
                         std::unique_ptr<Claims> claims)
    : options_(std::move(options)),
      queue_(std::move(claims)),
      workers_(options_.layout, options_.directory, queue_),
      supervisor_(std::move(supervisor)) {
  workers_.use(*supervisor_);
  Status started = supervisor_->listen([this](const SupervisorEvent& event) { on_event(event); },
                                       [this](const std::string& reason) { on_lost(reason); });
  if (started.ok()) started = queue_.start([this] { return serve(); });
  if (!started.ok()) on_lost(started.error().message);
}

ProcessRuns::~ProcessRuns() { close(); }

// ---- Starting ----------------------------------------------------------------------------------

Status ProcessRuns::start(const api::Study& study, const api::Trial& trial, std::int64_t run) {
  const RunKey key{trial.metadata.name, run};
  const std::lock_guard<std::mutex> starting(start_mutex_);
  if (runs_.contains(key)) return success();
  const Error shutting_down{ErrorCode::kUnavailable, kShuttingDown};
  if (queue_.is_closed()) return shutting_down;
  const std::string lost = failure();
  if (!lost.empty()) return io_error(lost + "; run fettle run again to resume");
  // A run that can never start is refused at once, room or not.
  FETTLE_ASSIGN(RunRequest request,
                request_run(study, trial, run, options_.layout, options_.trainer));
  KnownRun known;
  known.run.id = run;
  known.run.workers = request.workers();
  known.request = std::make_shared<const RunRequest>(std::move(request));
  if (!queue_.wait(key)) return shutting_down;
  runs_.insert(key, known);
  Status begun = begin(key);
  if (begun.ok()) return success();
  if (begun.error().code != ErrorCode::kUnavailable) {
    queue_.release(key);
    runs_.erase(key);
    return begun;
  }
  queue_.wake();  // the thread may sleep long, as no run has waited so far
  runs_.notify(key.first);
  return success();
}

// Starts a waiting run. kUnavailable: the machine or its disk has no room, so it keeps waiting;
// after another error it is neither admitted nor waits, and the caller decides. Needs start_mutex_.
Status ProcessRuns::begin(const RunKey& key) {
  const std::optional<KnownRun> waiting = runs_.find(key);
  if (!waiting || !waiting->request) {  // removed meanwhile
    queue_.release(key);
    return success();
  }
  const RunRequest& request = *waiting->request;
  const bool is_warm = !waiting->needs_process && may_train_warm(request);
  const auto worker = is_warm ? workers_.place(key, request) : std::nullopt;
  Status begun =
      worker ? assign(key, request, *worker) : start_process(key, request, /*is_worker=*/is_warm);
  // With a full disk it waits, unless the queue is closed.
  const bool disk_is_full = !begun.ok() && begun.error().code == ErrorCode::kUnavailable;
  if (disk_is_full && !queue_.waits(key) && !queue_.wait(key)) runs_.erase(key);
  return begun;
}

// Starts a process for the run, which with `is_worker` may take further runs.
Status ProcessRuns::start_process(const RunKey& key, const RunRequest& request, bool is_worker) {
  const Grant granted = queue_.admit(
      key, is_worker ? need_of_worker(request.study) : need_of(request.study, request.workers()));
  if (!granted.ok()) {
    workers_.make_room(is_worker);
    wait(key, granted.shortage, {});
    return Error{ErrorCode::kUnavailable, granted.shortage.text()};
  }
  Result<SupervisorCommand> command = prepare_run(request, options_.layout, options_.directory,
                                                  granted.gpus, queue_.room().gpus_by_pci);
  if (!command.ok()) {
    queue_.release(key);
    return command.error();
  }
  if (is_worker) workers_.start(request, *command);
  const RunKey holder = workers_.holder_of(key);
  command->claim_file = queue_.claim_file(holder);
  // false: remove() was called meanwhile, which does not take start_mutex_.
  const bool is_known = runs_.update(key, [&](KnownRun& started) {
    started.gpus = granted.gpus;
    started.claimed_workers = request.workers();
    if (is_worker) started.run.gpus = gpus_of_slot(request.study.spec.trial);
    started.run.pod_uid = command->pod_uid;
    started.clear_reason();
  });
  Status sent = is_known ? supervisor_->send(*command) : success();
  if (is_known && sent.ok()) return sent;
  workers_.erase(command->worker);
  queue_.release(holder);
  return sent;
}

// Gives the run to a worker, which holds the resources that it needs.
Status ProcessRuns::assign(const RunKey& key, const RunRequest& request, std::int64_t worker) {
  Result<SupervisorCommand> command =
      prepare_run(request, options_.layout, options_.directory, /*gpus=*/{}, /*by_pci=*/false);
  queue_.release(key);  // it waits no longer
  if (!command.ok()) {
    workers_.release(key);
    return command.error();
  }
  command->kind = SupervisorCommand::Kind::kAssign;
  command->worker = worker;
  const bool is_known = runs_.update(key, [&](KnownRun& started) {
    started.run.gpus = gpus_of_slot(request.study.spec.trial);
    started.run.pod_uid = command->pod_uid;
    started.clear_reason();
  });
  Status sent = is_known ? supervisor_->send(*command) : success();
  if (!is_known || !sent.ok()) workers_.release(key);
  return sent;
}

// Lets the run wait, or drops it once the queue is closed: it has not begun, so nothing is recorded
// about it.
void ProcessRuns::wait(const RunKey& key, const Shortage& shortage,
                       std::chrono::milliseconds pause) {
  runs_.update(key, [&](KnownRun& known) { known.set_reason(shortage.in(kNoRoom)); });
  if (queue_.wait(key, pause)) return;
  queue_.release(key);
  runs_.erase(key);
}

// Tries each waiting run. On the queue's thread.
bool ProcessRuns::serve() {
  const std::lock_guard<std::mutex> starting(start_mutex_);
  if (queue_.is_closed() || !failure().empty()) return false;
  const bool soon = workers_.serve();
  for (const RunKey& key : queue_.due()) {
    const Status begun = begin(key);
    // kUnavailable: begin() has let it wait again.
    if (!begun.ok() && begun.error().code == ErrorCode::kUnavailable) continue;
    if (!begun.ok() && begun.error().code != ErrorCode::kInvalid) {
      // A fault of the system, such as a full disk, may pass.
      wait(key, {begun.error().message, ""}, kRefusedPause);
      continue;
    }
    if (!begun.ok()) {
      runs_.update(
          key, [&](KnownRun& known) { known.end(api::Outcome::kFailed, begun.error().message); });
    }
    runs_.notify(key.first);
  }
  return soon;
}

// No run begins any more.
void ProcessRuns::close() {
  queue_.close();
  const std::lock_guard<std::mutex> starting(start_mutex_);
  for (const RunKey& key : queue_.drop_waiting()) runs_.erase(key);
}

// ---- Changing ----------------------------------------------------------------------------------

Status ProcessRuns::resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) {
  const RunKey key{trial.metadata.name, run};
  const std::lock_guard<std::mutex> starting(start_mutex_);
  const std::optional<KnownRun> found = runs_.find(key);
  if (!found) return success();
  if (queue_.waits(key)) {  // it has not begun, so its request is made anew
    FETTLE_ASSIGN(RunRequest request, request_run(found->request->study, trial, run,
                                                  options_.layout, options_.trainer));
    runs_.update(key, [&](KnownRun& known) {
      known.request = std::make_shared<const RunRequest>(std::move(request));
      known.run.workers = workers;
    });
    return success();
  }
  FETTLE_ASSIGN(const Shortage shortage, grow(key, *found, workers));
  if (!shortage.empty()) {
    // The run continues with its present workers, and the caller may ask again.
    runs_.update(key, [&](KnownRun& known) {
      if (known.has_ended()) return;  // it keeps the reason of its end
      known.run.unplaced_workers = std::max<std::int64_t>(0, workers - known.run.workers);
      known.set_reason(shortage);
    });
    return success();
  }
  SupervisorCommand command = command_to(SupervisorCommand::Kind::kResize, key);
  command.worker_count = workers;
  FETTLE_TRY(supervisor_->send(command));
  runs_.update(key, [&](KnownRun& known) {
    known.run.workers = workers;
    if (known.run.unplaced_workers > 0) known.clear_reason();
    known.run.unplaced_workers = 0;
  });
  return success();
}

// Claims the resources of more workers. Returns the missing resources, if an earlier run waits for
// them or the machine lacks them. Needs start_mutex_.
Result<Shortage> ProcessRuns::grow(const RunKey& key, KnownRun known, std::int64_t workers) {
  if (!known.request || known.has_ended()) return Shortage{};
  const api::TrialTemplate& trial = known.request->study.spec.trial;
  const bool is_elastic = trial.workers.min < trial.workers.max;
  if (!is_elastic) return Shortage{};
  const std::int64_t each = api::whole_gpus(trial);  // GPUs of a worker, at least 1
  // Not the running workers: after a run has shrunk it still holds the claims of the others.
  const std::int64_t has = trial.gpu ? std::ssize(known.gpus) / each : known.claimed_workers;
  const std::int64_t wanted = std::min(workers, trial.workers.max);
  if (wanted > has) {
    const Grant more = queue_.extend(key, need_of(known.request->study, wanted - has));
    if (!more.ok()) {
      return more.shortage.in("trial " + key.first + " cannot have " + std::to_string(wanted) +
                              " workers now");
    }
    known.gpus.insert(known.gpus.end(), more.gpus.begin(), more.gpus.end());
    runs_.update(key, [&](KnownRun& grown) {
      grown.gpus = known.gpus;
      grown.claimed_workers = wanted;
    });
  }
  if (known.gpus.empty()) return Shortage{};
  // Always: an earlier call may have claimed the GPUs and failed to write them.
  const Status written =
      write_gpus(options_.layout.run_directory(key.first, key.second), known.gpus, each);
  if (written.ok()) return Shortage{};
  const bool disk_is_full = written.error().code == ErrorCode::kUnavailable;
  if (disk_is_full) return Shortage{written.error().message, ""};
  return written.error();
}

// A run that still waits is stopped before it began.
Status ProcessRuns::stop(const api::Trial& trial, std::int64_t run) {
  const RunKey key{trial.metadata.name, run};
  const std::lock_guard<std::mutex> starting(start_mutex_);
  const std::optional<KnownRun> found = runs_.find(key);
  if (!found || found->has_ended()) return success();
  if (!queue_.waits(key)) {
    return supervisor_->send(command_to(SupervisorCommand::Kind::kStop, key));
  }
  queue_.release(key);
  runs_.update(
      key, [](KnownRun& known) { known.end(api::Outcome::kStopped, "stopped before it began"); });
  runs_.notify(key.first);
  return success();
}

Status ProcessRuns::remove(const api::Trial& trial, std::int64_t run) {
  const RunKey key{trial.metadata.name, run};
  queue_.release(key);
  runs_.erase(key);
  return success();
}

// ---- Observing ---------------------------------------------------------------------------------

// Runs of this process come from memory. Runs of an earlier process are read from the disk, but
// only if the trial still waits for their outcome: all others are recorded and forgotten.
Result<std::vector<core::Run>> ProcessRuns::observe(const api::Trial& trial) {
  const std::string& name = trial.metadata.name;
  const auto recall = [&](std::int64_t run) {
    const auto recalled = recall_run(options_.layout, trial, run, options_.find_metric_options);
    KnownRun known;
    if (recalled) known.run = *recalled;
    if (recalled) runs_.insert({name, run}, known);
  };
  for (const api::RunRecord& record : trial.status.runs) {
    if (!record.outcome && !runs_.contains({name, record.run})) recall(record.run);
  }
  // The first run is started without a record of its own (core/trial/trial_plan.cpp). After a crash
  // its trial file shows that it was started.
  const bool unrecorded = trial.status.runs.empty() && !runs_.contains({name, 0});
  if (unrecorded && was_prepared(options_.layout, trial, 0)) recall(0);
  std::vector<core::Run> runs = runs_.runs_of(name);
  for (core::Run& run : runs) {
    if (queue_.waits({name, run.id})) run.unplaced_workers = run.workers;  // none has begun
  }
  return runs;
}

// The capacity of the whole machine: while others use it, new trials wait.
core::Capacity ProcessRuns::capacity(const api::Study& study) {
  return {fitting_trials(study, room()).trials};
}

void ProcessRuns::watch(std::function<void(const std::string& trial)> listener) {
  runs_.watch(std::move(listener));
}

void ProcessRuns::shutdown() {
  close();
  // A supervisor that cannot be reached has already exited.
  (void)supervisor_->send(command_to(SupervisorCommand::Kind::kShutdown));
  supervisor_->join();
}

void ProcessRuns::kill() { (void)supervisor_->send(command_to(SupervisorCommand::Kind::kKill)); }

std::string ProcessRuns::failure() const {
  const std::lock_guard<std::mutex> guard(failure_mutex_);
  return failure_;
}

// ---- Events of the supervisor ------------------------------------------------------------------

void ProcessRuns::on_event(const SupervisorEvent& event) {
  const RunKey key{event.trial, event.run};
  if (event.kind == SupervisorEvent::Kind::kRefused) return on_refused(event);
  if (event.kind == SupervisorEvent::Kind::kWorkerEnded) return workers_.erase(event.worker);
  if (event.kind == SupervisorEvent::Kind::kWorkerReady) {
    return workers_.set_ready(event.worker, event.takes_arguments);
  }
  const bool has_started = event.kind == SupervisorEvent::Kind::kStarted;
  const bool is_known = runs_.update(key, [&](KnownRun& known) {
    if (has_started) {
      known.run.state = core::RunState::kRunning;
      known.run.queued = false;
      known.run.started_ms = event.started_ms;
      known.clear_reason();
    }
    if (event.report) known.run.report = event.report;
    if (!event.outcome) return;
    take_outcome(*event.outcome, known.run);
    known.request.reset();
  });
  if (event.outcome) {
    const bool had_worker = workers_.end_run(key, event.outcome->outcome, event.worker_memory);
    if (!had_worker) queue_.release(key);
    queue_.wake();  // its resources may be enough for a run that waits
  }
  if (!is_known) return;  // removed meanwhile
  if (has_started) queue_.hand_over(workers_.holder_of(key));
  runs_.notify(key.first);
}

// It has not begun, so its trial file is removed, and it waits again.
void ProcessRuns::on_refused(const SupervisorEvent& event) {
  const RunKey key{event.trial, event.run};
  const bool by_worker = event.worker > 0;
  workers_.release(key);
  const bool is_known = runs_.update(key, [&](KnownRun& known) {
    known.needs_process = known.needs_process || by_worker;
    // If it was reported running already, the effect is that of a queue that preempts it
    // (core/plan.h).
    known.run.queued = known.run.state == core::RunState::kRunning;
    known.run.state = core::RunState::kPending;
    known.run.started_ms = 0;
  });
  if (!is_known) return;
  ::unlink(options_.layout.trial_file(key.first, key.second).c_str());
  queue_.release(key);
  wait(key, {event.reason, ""}, by_worker ? std::chrono::milliseconds(0) : kRefusedPause);
  queue_.wake();  // other runs may use its room during the pause
  runs_.notify(key.first);
}

// Also if a thread that serves the runs could not be started.
void ProcessRuns::on_lost(const std::string& reason) {
  const std::lock_guard<std::mutex> starting(start_mutex_);
  for (const RunKey& key : queue_.drop_waiting()) runs_.erase(key);
  {
    const std::lock_guard<std::mutex> guard(failure_mutex_);
    if (failure_.empty()) failure_ = queue_.is_closed() ? kShuttingDown : reason;
  }
  for (const RunKey& key : runs_.end_all(reason)) {
    queue_.release(key);
    runs_.notify(key.first);
  }
}

}  // namespace fettle::local
