// ProcessRuns: control::Runs as child processes of a supervisor.
//
// A run is a directory (layout.h) and, while it lives, a process tree that the supervisor owns.
// observe() answers from memory, or after a restart from outcome.json: a run that has begun (its
// log exists) but has neither an outcome nor a process was Disrupted. Nothing blocks on a trial.
//
// A run is admitted to the machine (run_queue.h) before any of its files is written. While the
// machine has no room it is Pending and names the missing resources; it has a place in a queue, and
// leaves no trace on disk. So "not now" is neither a failure nor a disruption. A run that may train
// in a worker (docs/worker-protocol.md) goes to one with a free slot at once: the worker holds the
// resources, and keeps them between its runs (session_workers.h).
// Thread-safe. One own thread reads the supervisor's events, another starts waiting runs; the
// listener is called from both.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/control/runs.h"
#include "runtime/local/process/supervisor_client.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/run/recorded_run.h"
#include "runtime/local/run/run_queue.h"
#include "runtime/local/run/run_table.h"
#include "runtime/local/run/session_workers.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {

struct ProcessRunsOptions {
  Layout layout;
  std::string trainer;    // path of fettle-trainer, for Studies that use it; it need not exist
  std::string directory;  // in which trials start (prepare_run.h); "" = that of this process
  FindMetricOptions find_metric_options;  // for the logs of runs whose supervisor was killed
};

class ProcessRuns final : public control::Runs {
 public:
  // `supervisor` has been started, for this Study alone.
  ProcessRuns(ProcessRunsOptions options, std::unique_ptr<SupervisorClient> supervisor,
              std::unique_ptr<Claims> claims);
  ~ProcessRuns() override;

  Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) override;
  // Sets the workers, between trial.workers' min and max; a run that needs all its workers is left
  // unchanged. If there is no room for more workers now, it succeeds and the run says so
  // (unplaced_workers). A run keeps its claims to its end.
  Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) override;
  Status stop(const api::Trial& trial, std::int64_t run) override;
  Status remove(const api::Trial& trial, std::int64_t run) override;
  Result<std::vector<core::Run>> observe(const api::Trial& trial) override;
  core::Capacity capacity(const api::Study& study) override;
  void watch(std::function<void(const std::string& trial)> listener) override;

  // Stops all runs gently and lets the supervisor end; returns when it has ended. Runs are then
  // observed as Disrupted, or as Stopped if that was requested before. Afterwards start() fails
  // with kUnavailable.
  void shutdown();
  // From any thread, also during shutdown(): SIGKILL to every run now.
  void kill();
  pid_t supervisor_pid() const { return supervisor_->pid(); }
  // "" while the supervisor lives, otherwise why no run can be started any more.
  std::string failure() const;
  // The resources of the machine that this Session may use.
  const Room& room() const { return queue_.room(); }

 private:
  Status begin(const RunKey& key);
  Status start_process(const RunKey& key, const RunRequest& request, bool is_worker);
  Status assign(const RunKey& key, const RunRequest& request, std::int64_t worker);
  void wait(const RunKey& key, const Shortage& shortage, std::chrono::milliseconds pause);
  bool serve();
  void close();
  Result<Shortage> grow(const RunKey& key, KnownRun known, std::int64_t workers);
  void on_event(const SupervisorEvent& event);
  void on_refused(const SupervisorEvent& event);
  void on_lost(const std::string& reason);

  const ProcessRunsOptions options_;
  std::mutex start_mutex_;  // one run begins, changes or stops at a time
  RunTable runs_;
  RunQueue queue_;
  SessionWorkers workers_;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  std::unique_ptr<SupervisorClient> supervisor_;  // last: its thread uses the members above
};

}  // namespace fettle::local
