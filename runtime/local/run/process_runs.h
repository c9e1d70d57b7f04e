// ProcessRuns: control::Runs as child processes of a supervisor.
//
// A run is a directory (layout.h) and, while it lives, a process tree that the supervisor owns.
// observe() answers from memory, or after a restart from outcome.json: a run that has begun (its
// log exists) but has neither an outcome nor a process was Disrupted. Nothing blocks on a trial.
//
// A run claims its resources of the machine (claims.h) before any of its files is written. While
// the machine has no room it is Pending and names the missing resources; it has a place in a queue,
// and leaves no trace on disk. So "not now" is neither a failure nor a disruption.
// Thread-safe. One own thread reads the supervisor's events, another starts waiting runs; the
// listener is called from both.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/runs.h"
#include "runtime/local/process/supervisor_client.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/run/claims.h"
#include "runtime/local/run/prepare_run.h"
#include "runtime/local/run/recorded_run.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {

class ProcessRuns final : public control::Runs {
 public:
  // `trainer`: path of fettle-trainer, for Studies that use the built-in trainer (need not exist
  // otherwise). `supervisor` has been started, for this Study alone.
  ProcessRuns(Layout layout, std::string trainer, std::unique_ptr<SupervisorClient> supervisor,
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
  // The directory in which trials start, unless the container's workingDir is absolute; "" = that
  // of this process. Call it before the first start().
  void run_in(std::string directory) { directory_ = std::move(directory); }
  // For the logs of runs whose supervisor was killed. Call it before the first observe().
  void read_logs_by(HowToRead how_to_read) { how_to_read_ = std::move(how_to_read); }

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
  const Room& room() const { return claims_->room(); }

 private:
  using RunKey = std::pair<std::string, std::int64_t>;  // trial, run

  struct Known {
    core::Run run;
    std::shared_ptr<const RunRequest> request;  // until it has ended
    std::vector<GpuName> gpus;
    // The number of workers whose cores and memory it has claimed. The run keeps them, like its
    // GPUs, to its end, however few workers are left.
    std::int64_t claimed_workers = 0;
    std::int64_t try_at_ms = 0;  // a waiting run is not tried before
    std::string stable_reason;   // of run.reason: see Shortage

    // Keeps the present text if only the changing part of the reason is new.
    void set_reason(const Shortage& shortage);
    void clear_reason();
  };

  Status begin(const RunKey& key);
  void set_unplaced(const RunKey& key, std::int64_t workers, const Shortage& shortage);
  Status grow(const RunKey& key, std::int64_t workers, Shortage& shortage);
  void wait(const RunKey& key, const Shortage& shortage, std::int64_t pause_ms);
  void leave_queue(const RunKey& key);
  void end_unbegun(const RunKey& key, api::Outcome outcome, const std::string& reason);
  Status start_threads();
  void start_waiting();
  void serve_queue();
  void drop_queue();
  void close();
  void on_event(const SupervisorEvent& event);
  void on_lost(const std::string& reason);
  void take(const SupervisorEvent& event, const RunKey& key, Known& known);
  void notify(const std::string& trial);

  const Layout layout_;
  const std::string trainer_;
  std::string directory_;
  const std::unique_ptr<Claims> claims_;
  std::mutex start_mutex_;  // one run begins at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable room_made_;
  bool retry_ = false;            // there may be room, or a new run waits for it
  std::map<RunKey, Known> runs_;  // started here or recalled, and not removed
  std::vector<RunKey> queue_;     // runs that wait for room, the longest first
  std::string failure_;
  bool closing_ = false;
  std::function<void(const std::string&)> listener_;
  HowToRead how_to_read_;
  std::thread starter_;
  std::unique_ptr<SupervisorClient> supervisor_;  // last: its thread uses the members above
};

}  // namespace fettle::local
