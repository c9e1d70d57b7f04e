// ProcessRuns: control::Runs as child processes of a supervisor.
//
// A run is a directory (layout.h) and, while it lives, a process tree that the supervisor owns.
// observe() answers from memory, after a restart from outcome.json: a run that was written down as
// started, has no outcome and no process was Disrupted. Nothing blocks on a trial.
// Thread-safe. A thread of its own reads what the supervisor says; the listener is called from it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "control/runs.h"
#include "runtime/local/layout.h"
#include "runtime/local/supervisor_client.h"
#include "runtime/local/supervisor_wire.h"

namespace fettle::local {

class ProcessRuns final : public control::Runs {
 public:
  // `trainer`: path of fettle-trainer, for Studies that use the built-in one (need not exist
  // otherwise). `supervisor` is started, and for this Study alone.
  ProcessRuns(Layout layout, std::string trainer, std::unique_ptr<SupervisorClient> supervisor);
  ~ProcessRuns() override;

  Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) override;
  // Between trial.workers' min and max; a run whose workers are all needed stays as it is.
  Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) override;
  Status stop(const api::Trial& trial, std::int64_t run) override;
  Status remove(const api::Trial& trial, std::int64_t run) override;
  Result<std::vector<core::Run>> observe(const api::Trial& trial) override;
  core::Capacity capacity(const api::Study& study) override;
  void watch(std::function<void(const std::string& trial)> listener) override;

  // Stops all runs gently and lets the supervisor end; returns when it has. Runs then read as
  // Disrupted, Stopped where that was asked before. Afterwards start() fails with kUnavailable.
  void shutdown();
  // From any thread, also during shutdown(): SIGKILL to every run now.
  void kill();
  pid_t supervisor_pid() const { return supervisor_->pid(); }
  // "" while the supervisor lives, otherwise why no run can be started any more.
  std::string failure() const;

 private:
  using RunKey = std::pair<std::string, std::int64_t>;  // trial, run

  Status prepare(const api::Study& study, const api::Trial& trial, std::int64_t run,
                 SupervisorCommand& command) const;
  void on_event(const SupervisorEvent& event);
  void on_lost(const std::string& reason);
  void take(const SupervisorEvent& event, core::Run& run) const;
  Status take_gpus(const api::Study& study, const RunKey& key, SupervisorCommand& command);
  bool was_prepared(const api::Trial& trial, std::int64_t run) const;
  core::Run recall(const api::Trial& trial, std::int64_t run) const;
  void notify(const std::string& trial);

  const Layout layout_;
  const std::string trainer_;
  mutable std::mutex mutex_;
  std::map<RunKey, core::Run> runs_;  // that were started here or recalled, and not removed
  std::map<RunKey, std::vector<std::string>> gpus_;  // that runs in runs_ were given
  std::string failure_;
  bool closing_ = false;
  std::function<void(const std::string&)> listener_;
  std::unique_ptr<SupervisorClient> supervisor_;  // last: its thread uses the members above
};

}  // namespace fettle::local
