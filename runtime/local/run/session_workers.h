// SessionWorkers: the workers of one Session: which run goes to which, their claims on the
// machine, their ends, and their list on the disk.
//
// The pool (worker_pool.h) decides; this class carries it out. A worker has the claim that its
// first run was granted. Thread-safe, but place() and start() need the caller's lock on starts;
// serve() is for the queue's thread alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/local/process/supervisor_client.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/run/prepare_run.h"
#include "runtime/local/run/run_queue.h"
#include "runtime/local/store/layout.h"
#include "runtime/local/worker/worker_pool.h"

namespace fettle::local {

class SessionWorkers {
 public:
  // `directory`: as for prepare_run(). The queue and the supervisor must outlive it.
  SessionWorkers(Layout layout, std::string directory, RunQueue& queue)
      : layout_(std::move(layout)), directory_(std::move(directory)), queue_(queue) {}
  // Once, before any other call.
  void use(SupervisorClient& supervisor) { supervisor_ = &supervisor; }

  // Gives the run to a worker with a free slot, if there is one, and returns its number.
  std::optional<std::int64_t> place(const RunKey& run, const RunRequest& request);
  // Makes the command of the run start a worker, which takes over the run's claim.
  void start(const RunRequest& request, SupervisorCommand& command);
  // A run found no room: an idle worker ends if that may help. `is_worker`: it may train in one.
  void make_room(bool is_worker);

  void set_ready(std::int64_t worker, bool takes_arguments);
  // The run was refused, or never sent. Returns whether a worker had it.
  bool release(const RunKey& run);
  // The run has ended. Returns whether a worker had it.
  bool end_run(const RunKey& run, api::Outcome outcome, std::int64_t worker_memory);
  // The worker has ended, or was never started.
  void erase(std::int64_t worker);
  // The key by which the queue knows the resources of a run.
  RunKey holder_of(const RunKey& run) const;

  // Ends idle workers that should not stay, and lists the others. Returns whether it should be
  // called again soon.
  bool serve();

 private:
  void end(std::int64_t worker);
  void end_spent(std::int64_t now_ms);
  bool list(std::int64_t now_ms);

  const Layout layout_;
  const std::string directory_;
  RunQueue& queue_;
  SupervisorClient* supervisor_ = nullptr;
  WorkerPool pool_;
  // On the queue's thread.
  std::int64_t others_asked_ms_ = 0;  // when
  std::int64_t listed_ms_ = 0;        // when the list was written
  std::vector<WorkerView> listed_;
};

// Whether the run may share a process with other runs. After a failure or a disruption it has a
// process of its own, so a worker that is damaged cannot fail a trial twice.
bool may_train_warm(const RunRequest& request);

// The share of GPUs that a run in a worker has; absent: as the Study says.
std::optional<double> gpus_of_slot(const api::TrialTemplate& trial);

}  // namespace fettle::local
