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
#include "runtime/local/run/worker_list.h"

namespace fettle::local {
namespace {

constexpr auto kRefusedPause = std::chrono::milliseconds(1000);  // after an error that may pass
constexpr std::int64_t kOthersIntervalMs = 250;  // between questions for other Sessions' runs
constexpr std::int64_t kListIntervalMs = 1'000;  // between two lists of workers
constexpr const char* kNoRoom = "no room on this machine yet";
constexpr const char* kShuttingDown = "fettle run is shutting down";

SupervisorCommand command_to(SupervisorCommand::Kind kind, const RunKey& run = {}) {
  SupervisorCommand command;
  command.kind = kind;
  std::tie(command.trial, command.run) = run;
  return command;
}

std::int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Under this key the queue knows the resources of a worker. No trial has such a name, since a
// trial's name ends with its index.
RunKey key_of_worker(std::int64_t worker) { return {"worker", worker}; }

// Whether the run may share a process with other runs. After a failure or a disruption it has a
// process of its own, so a worker that is damaged cannot fail a trial twice.
bool may_train_warm(const RunRequest& request) {
  if (!api::trains_warm(request.study.spec.trial) || request.workers() > 1) return false;
  const std::vector<api::RunRecord>& records = request.trial.status.runs;
  const auto earlier = std::ranges::find_if(records.rbegin(), records.rend(), [&](const auto& r) {
    return r.run < request.run && r.outcome;
  });
  return earlier == records.rend() || earlier->outcome == api::Outcome::kSucceeded ||
         earlier->outcome == api::Outcome::kStopped;
}

// The share of GPUs that a run in a worker has; absent: as the Study says.
std::optional<double> gpus_of_slot(const api::TrialTemplate& trial) {
  const std::int64_t slots = api::slots_of(trial);
  if (!trial.gpu || slots == 1) return std::nullopt;
  return static_cast<double>(api::whole_gpus(trial)) / static_cast<double>(slots);
}

WorkerShape shape_of(const RunRequest& request, const std::string& directory) {
  const api::TrialTemplate& trial = request.study.spec.trial;
  const RunCommand& command = request.command;
  return {.arguments = command.arguments,
          .directory = command.directory.empty() ? directory : command.directory,
          .memory_limit = command.memory_limit,
          .pass_environment = trial.pass_environment,
          .slots = api::slots_of(trial)};
}

}  // namespace

ProcessRuns::ProcessRuns(ProcessRunsOptions options, std::unique_ptr<SupervisorClient> supervisor,
                         std::unique_ptr<Claims> claims)
    : options_(std::move(options)), queue_(std::move(claims)), supervisor_(std::move(supervisor)) {
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
  const bool is_warm = !waiting->needs_process && may_train_warm(*waiting->request);
  if (is_warm) {
    const auto worker = pool_.place(key, shape_of(*waiting->request, options_.directory));
    if (worker) return assign(key, *waiting->request, *worker);
  }
  return start_process(key, *waiting, is_warm);
}

// Starts a process for the run, which with `is_worker` may take further runs.
Status ProcessRuns::start_process(const RunKey& key, const KnownRun& known, bool is_worker) {
  const RunRequest& request = *known.request;
  const Grant granted = queue_.admit(
      key, is_worker ? need_of_worker(request.study) : need_of(request.study, request.workers()));
  if (!granted.ok()) {
    // An idle worker of another shape has no use for its room.
    const auto idle = is_worker ? pool_.take_idle() : pool_.make_room();
    if (idle) end_worker(*idle);
    wait(key, granted.shortage, {});
    return Error{ErrorCode::kUnavailable, granted.shortage.text()};
  }
  Result<SupervisorCommand> command = prepare_run(request, options_.layout, options_.directory,
                                                  granted.gpus, queue_.room().gpus_by_pci);
  if (!command.ok()) return keep_waiting(key, command.error());
  RunKey holder = key;
  if (is_worker) {
    // Without the directory, output between runs is lost, and nothing else.
    (void)make_directories(options_.layout.study_directory() + "/workers");
    command->worker = pool_.add(key, shape_of(request, options_.directory), now_ms());
    command->slots = api::slots_of(request.study.spec.trial);
    command->memory_limit *= command->slots;
    if (request.study.spec.trial.trainer) command->arguments.emplace_back("--worker");
    command->worker_log = options_.layout.worker_log(command->worker);
    holder = key_of_worker(command->worker);
    queue_.give_to(key, holder);
  }
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
  if (is_known && sent.ok()) {
    if (is_worker) queue_.wake();  // for list_workers()
    return sent;
  }
  pool_.erase(command->worker);
  queue_.release(holder);
  return sent;
}

// Gives the run to a worker, which holds the resources that it needs.
Status ProcessRuns::assign(const RunKey& key, const RunRequest& request, std::int64_t worker) {
  Result<SupervisorCommand> command =
      prepare_run(request, options_.layout, options_.directory, /*gpus=*/{}, /*by_pci=*/false);
  if (!command.ok()) {
    pool_.release(key, /*memory=*/0, now_ms());
    return keep_waiting(key, command.error());
  }
  command->kind = SupervisorCommand::Kind::kAssign;
  command->worker = worker;
  queue_.release(key);  // it waits no longer
  const bool is_known = runs_.update(key, [&](KnownRun& started) {
    started.run.gpus = gpus_of_slot(request.study.spec.trial);
    started.run.pod_uid = command->pod_uid;
    started.clear_reason();
  });
  Status sent = is_known ? supervisor_->send(*command) : success();
  if (!is_known || !sent.ok()) pool_.release(key, /*memory=*/0, now_ms());
  return sent;
}

// The files of a run cannot be written. With a full disk it waits.
Status ProcessRuns::keep_waiting(const RunKey& key, const Error& error) {
  queue_.release(key);
  const bool disk_is_full = error.code == ErrorCode::kUnavailable;
  if (disk_is_full && !queue_.wait(key)) runs_.erase(key);  // false: the queue is closed
  return error;
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
  end_spent_workers();
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
  const bool is_listed = list_workers();
  return pool_.has_idle() || !is_listed;
}

// Writes the list of workers if it has changed, once a second at most. Returns whether it is up to
// date.
bool ProcessRuns::list_workers() {
  std::vector<WorkerView> views = pool_.views();
  if (views == listed_) return true;
  const std::int64_t now = now_ms();
  if (now < listed_ms_ + kListIntervalMs) return false;
  listed_ms_ = now;
  // A list that cannot be written is only for people.
  if (write_workers(options_.layout, views).ok()) listed_ = std::move(views);
  return true;
}

// Ends idle workers that should not stay. Other Sessions wait in vain for the room of a worker that
// always has a run, so each worker gives way after some time.
void ProcessRuns::end_spent_workers() {
  if (!pool_.has_idle()) return;
  const std::int64_t now = now_ms();
  bool others_wait = false;
  if (now >= others_asked_ms_ + kOthersIntervalMs) {
    others_asked_ms_ = now;
    others_wait = queue_.others_wait();
  }
  for (const std::int64_t worker : pool_.take_spent(others_wait, now)) end_worker(worker);
}

void ProcessRuns::end_worker(std::int64_t worker) {
  SupervisorCommand command = command_to(SupervisorCommand::Kind::kEndWorker);
  command.worker = worker;
  // A supervisor that cannot be reached has ended, with all workers.
  (void)supervisor_->send(command);
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
  if (event.kind == SupervisorEvent::Kind::kWorkerEnded) return on_worker_ended(event.worker);
  if (event.kind == SupervisorEvent::Kind::kWorkerReady) {
    pool_.set_ready(event.worker, event.takes_arguments);
    if (event.takes_arguments) queue_.wake();  // for runs that differ in their arguments
    return;
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
    const bool had_worker = pool_.release(key, event.worker_memory, now_ms()).has_value();
    if (!had_worker) queue_.release(key);
    queue_.wake();  // its resources may be enough for a run that waits
  }
  if (!is_known) return;  // removed meanwhile
  if (has_started) {
    const auto worker = pool_.worker_of(key);
    queue_.hand_over(worker ? key_of_worker(*worker) : key);
  }
  runs_.notify(key.first);
}

void ProcessRuns::on_worker_ended(std::int64_t worker) {
  pool_.erase(worker);
  queue_.release(key_of_worker(worker));
  queue_.wake();
}

// It has not begun, so its trial file is removed, and it waits again.
void ProcessRuns::on_refused(const SupervisorEvent& event) {
  const RunKey key{event.trial, event.run};
  const bool by_worker = event.worker > 0;
  pool_.release(key, /*memory=*/0, now_ms());
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
