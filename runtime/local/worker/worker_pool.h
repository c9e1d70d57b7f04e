// WorkerPool: the workers of one Session (docs/worker-protocol.md), and the worker that a run goes
// to.
//
// A run goes to a worker of its shape with a free slot; without one, a new worker starts. A worker
// ends between two runs: when one has failed, when it has trained many or has grown, or when it
// must give its room to others. Decisions depend on nothing but the calls. Thread-safe: each
// function is one atomic step. Times are milliseconds of any steady clock, handed in.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

// Runs that differ in this cannot share a worker.
struct WorkerShape {
  std::vector<std::string> arguments;  // may differ if the worker takes each run's own
  std::string directory;
  std::int64_t memory_limit = 0;  // bytes; 0 = none
  std::vector<std::string> pass_environment;
  std::int64_t slots = 1;
  bool operator==(const WorkerShape&) const = default;
};

// One worker, for people.
struct WorkerView {
  std::int64_t number = 0;
  std::int64_t trained = 0;       // runs that have ended
  std::int64_t memory = 0;        // bytes, at its last run's end; 0 = unknown
  std::vector<std::string> runs;  // that it trains now
  bool operator==(const WorkerView&) const = default;
};

class WorkerPool {
 public:
  static constexpr std::int64_t kMostTrained = 1'000;
  // A worker may hold a quarter and this much more than after its third run.
  static constexpr std::int64_t kMostGrowth = 64 << 20;
  static constexpr std::int64_t kLeastAgeMs = 5'000;  // before it ends because others wait
  static constexpr std::int64_t kMostIdleMs = 60'000;

  // Gives the run to a worker and returns its number; absent: none has a slot for it.
  std::optional<std::int64_t> place(const RunKey& run, const WorkerShape& shape);
  // Adds a worker that starts for that run, and returns its number.
  std::int64_t add(const RunKey& first, const WorkerShape& shape, std::int64_t now_ms);
  // The worker is ready. `takes_arguments`: runs may differ in their arguments.
  void set_ready(std::int64_t worker, bool takes_arguments);
  // The run has ended, or was refused. `failed`: by itself, so the worker may be damaged, and gets
  // no further run. `memory`: that the worker holds now; 0 = unknown. Returns the worker that had
  // the run.
  std::optional<std::int64_t> release(const RunKey& run, bool failed, std::int64_t memory,
                                      std::int64_t now_ms);
  // The worker has ended.
  void erase(std::int64_t worker);

  std::optional<std::int64_t> worker_of(const RunKey& run) const;
  bool has_idle() const;

  // Takes the idle workers that should end now; they get no further run. `others_wait`: runs of
  // other Sessions wait for room.
  std::vector<std::int64_t> take_spent(bool others_wait, std::int64_t now_ms);
  // A run waits for room that one worker less would make. Takes an idle worker; if none is, the
  // next one that becomes idle is spent.
  std::optional<std::int64_t> make_room();
  // Takes an idle worker, if there is one.
  std::optional<std::int64_t> take_idle();

  std::vector<WorkerView> views() const;

 private:
  struct Worker {
    WorkerShape shape;
    bool takes_arguments = false;
    bool ends = false;
    bool may_be_damaged = false;
    std::set<RunKey> runs;
    std::int64_t trained = 0;
    std::int64_t memory = 0;
    std::int64_t early_memory = 0;  // after the third run; 0 = unknown
    std::int64_t started_ms = 0;
    std::int64_t idle_since_ms = 0;
  };

  static bool fits(const Worker& worker, const WorkerShape& shape);
  static bool is_worn(const Worker& worker);

  mutable std::mutex mutex_;
  std::map<std::int64_t, Worker> workers_;
  std::int64_t last_ = 0;
  bool wants_room_ = false;
};

}  // namespace fettle::local
