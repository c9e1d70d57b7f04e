#include "runtime/local/run/session_workers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/study/resolve.h"
#include "base/file.h"
#include "runtime/local/worker/worker_list.h"

namespace fettle::local {
namespace {

constexpr std::int64_t kOthersIntervalMs = 250;  // between questions for other Sessions' runs
constexpr std::int64_t kListIntervalMs = 1'000;  // between two lists

std::int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// Under this key the queue knows the resources of a worker. No trial has such a name, since a
// trial's name ends with its index.
RunKey key_of_worker(std::int64_t worker) { return {"worker", worker}; }

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

bool may_train_warm(const RunRequest& request) {
  if (!api::trains_warm(request.study.spec.trial) || request.workers() > 1) return false;
  const std::vector<api::RunRecord>& records = request.trial.status.runs;
  const auto earlier = std::ranges::find_if(records.rbegin(), records.rend(), [&](const auto& r) {
    return r.run < request.run && r.outcome;
  });
  return earlier == records.rend() || earlier->outcome == api::Outcome::kSucceeded ||
         earlier->outcome == api::Outcome::kStopped;
}

std::optional<double> gpus_of_slot(const api::TrialTemplate& trial) {
  const std::int64_t slots = api::slots_of(trial);
  if (!trial.gpu || slots == 1) return std::nullopt;
  return static_cast<double>(api::whole_gpus(trial)) / static_cast<double>(slots);
}

std::optional<std::int64_t> SessionWorkers::place(const RunKey& run, const RunRequest& request) {
  return pool_.place(run, shape_of(request, directory_));
}

void SessionWorkers::start(const RunRequest& request, SupervisorCommand& command) {
  // Without the directory, output between runs is lost, and nothing else.
  (void)make_directories(layout_.workers_directory());
  const RunKey run = key_of(command);
  const api::TrialTemplate& trial = request.study.spec.trial;
  command.worker = pool_.add(run, shape_of(request, directory_), now_ms());
  command.slots = api::slots_of(trial);
  command.memory_limit *= command.slots;
  command.worker_log = layout_.worker_log(command.worker);
  if (trial.trainer) command.arguments.emplace_back("--worker");
  queue_.give_to(run, key_of_worker(command.worker));
  queue_.wake();  // for the list
}

// A run that may train in a worker has found none of its shape, so any idle one has another shape.
void SessionWorkers::make_room(bool is_worker) {
  if (const auto idle = is_worker ? pool_.take_idle() : pool_.make_room()) end(*idle);
}

void SessionWorkers::set_ready(std::int64_t worker, bool takes_arguments) {
  pool_.set_ready(worker, takes_arguments);
  if (takes_arguments) queue_.wake();  // for runs that differ in their arguments
}

bool SessionWorkers::release(const RunKey& run) {
  return pool_.release(run, /*failed=*/false, /*memory=*/0, now_ms()).has_value();
}

bool SessionWorkers::end_run(const RunKey& run, api::Outcome outcome, std::int64_t worker_memory) {
  const bool failed = outcome != api::Outcome::kSucceeded && outcome != api::Outcome::kStopped;
  return pool_.release(run, failed, worker_memory, now_ms()).has_value();
}

void SessionWorkers::erase(std::int64_t worker) {
  if (worker == 0) return;
  pool_.erase(worker);
  queue_.release(key_of_worker(worker));
  queue_.wake();
}

RunKey SessionWorkers::holder_of(const RunKey& run) const {
  const auto worker = pool_.worker_of(run);
  return worker ? key_of_worker(*worker) : run;
}

bool SessionWorkers::serve() {
  const std::int64_t now = now_ms();
  end_spent(now);
  const bool is_listed = list(now);
  return pool_.has_idle() || !is_listed;
}

// Other Sessions would wait in vain for the room of a worker that always has a run, so each worker
// gives way after some time.
void SessionWorkers::end_spent(std::int64_t now_ms) {
  if (!pool_.has_idle()) return;
  bool others_wait = false;
  if (now_ms >= others_asked_ms_ + kOthersIntervalMs) {
    others_asked_ms_ = now_ms;
    others_wait = queue_.others_wait();
  }
  for (const std::int64_t worker : pool_.take_spent(others_wait, now_ms)) end(worker);
}

void SessionWorkers::end(std::int64_t worker) {
  SupervisorCommand command;
  command.kind = SupervisorCommand::Kind::kEndWorker;
  command.worker = worker;
  // A supervisor that cannot be reached has ended, with all workers.
  (void)supervisor_->send(command);
}

// Writes the list if it has changed, at most once in each interval. Returns whether it is up to
// date.
bool SessionWorkers::list(std::int64_t now_ms) {
  if (now_ms < listed_ms_ + kListIntervalMs) return false;  // first: this is called for each run
  std::vector<WorkerView> views = pool_.views();
  if (views == listed_) return true;
  listed_ms_ = now_ms;
  // A list that cannot be written is only for people.
  if (write_workers(layout_, views).ok()) listed_ = std::move(views);
  return true;
}

}  // namespace fettle::local
