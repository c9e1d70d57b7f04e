// RunTable: the runs that this process has started or recalled, and not removed.
//
// Thread-safe; every function is one atomic step, and calls nothing but the change that it is given
// (notify() calls the listener, without a lock).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/run/gpus.h"
#include "runtime/local/run/prepare_run.h"
#include "runtime/local/run/room.h"

namespace fettle::local {

struct KnownRun {
  core::Run run;
  std::shared_ptr<const RunRequest> request;  // null: the run has ended, or was recalled
  std::vector<GpuName> gpus;
  // The number of workers whose cores and memory it has claimed. The run keeps them, like its GPUs,
  // to its end, however few workers are left.
  std::int64_t claimed_workers = 0;
  bool needs_process = false;  // a worker has refused it
  std::string stable_reason;   // of run.reason: see Shortage

  bool has_ended() const { return run.state == core::RunState::kExited; }
  void end(api::Outcome outcome, const std::string& reason);
  // Keeps the present text if only the changing part of the reason is new.
  void set_reason(const Shortage& shortage);
  void clear_reason();
};

class RunTable {
 public:
  // Keeps the run that is known already, if there is one.
  void insert(const RunKey& key, const KnownRun& run);
  bool contains(const RunKey& key) const;
  std::optional<KnownRun> find(const RunKey& key) const;
  // False: the run is not known.
  bool update(const RunKey& key, const std::function<void(KnownRun&)>& change);
  void erase(const RunKey& key);
  // The runs of a trial, ascending.
  std::vector<core::Run> runs_of(const std::string& trial) const;
  // Ends all runs that have not ended, as Disrupted, and returns them.
  std::vector<RunKey> end_all(const std::string& reason);

  void watch(std::function<void(const std::string& trial)> listener);
  void notify(const std::string& trial) const;

 private:
  mutable std::mutex mutex_;
  std::map<RunKey, KnownRun> runs_;
  std::function<void(const std::string&)> listener_;
};

}  // namespace fettle::local
