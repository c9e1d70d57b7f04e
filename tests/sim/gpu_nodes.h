// GpuNodes: trials as workers on nodes with GPUs that come and go, under the virtual clock. One
// thread.
//
// A worker takes one GPU. Workers are placed in the order of their requests; if a run needs all its
// workers at once, they are placed together, or not at all. A run computes while it has its least
// number of workers, rank 0 among them; it stands still while its workers gather. The loss of rank
// 0, or of any worker of a run of fixed size, costs the step under way. A run that has worked and
// finds no place for a lost worker within kGangTimeoutMs is disrupted, as on a cluster
// (runtime/kubernetes/job/run_of_job.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/control/clock.h"
#include "core/control/runs.h"

namespace fettle::sim {

inline constexpr std::int64_t kPlaceMs = 2'000;   // from a free GPU to a running worker
inline constexpr std::int64_t kGatherMs = 5'000;  // for workers to gather again
inline constexpr std::int64_t kGangTimeoutMs = 120'000;

// At `at_ms` node `node` comes (with `gpus`) or goes (0).
struct NodeChange {
  std::int64_t at_ms = 0;
  std::int64_t node = 0;
  std::int64_t gpus = 0;
};

// GPU-seconds of a step of a trial on one GPU.
using Work = std::function<double(std::int64_t index)>;
// Learning curve: the objective at a step, from the trial's parameters.
using Curve = std::function<double(const Json& parameters, std::int64_t step)>;

// Returns the speed of N workers relative to one: each further worker slows all a little.
inline double speed_of(std::int64_t workers) {
  const auto n = static_cast<double>(workers);
  return n / (1 + 0.02 * (n - 1));
}

class GpuNodes : public control::Runs {
 public:
  // `changes` in order of time.
  GpuNodes(control::Clock& clock, std::vector<NodeChange> changes, Work work, Curve curve);

  Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) override;
  Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) override;
  Status stop(const api::Trial& trial, std::int64_t run) override;
  Status remove(const api::Trial& trial, std::int64_t run) override;
  Result<std::vector<core::Run>> observe(const api::Trial& trial) override;
  core::Capacity capacity(const api::Study&) override { return {}; }
  void watch(std::function<void(const std::string& trial)> listener) override;

  // Carries out due events, and calls the listener.
  void advance();
  // Returns when the next event is due; -1 = never without the controllers.
  std::int64_t next_ms() const;

  // GPU-seconds so far: offered by nodes, held by workers, and spent on steps that counted.
  double offered() const { return offered_; }
  double held() const { return held_; }
  double useful() const { return useful_; }
  std::int64_t disruptions() const { return disruptions_; }

 private:
  using Id = std::pair<std::string, std::int64_t>;  // trial, run
  struct Process {
    core::Run run;
    std::string metric;
    Json parameters;
    double work = 1;
    std::int64_t least = 1;                      // fewest workers with which it can compute
    bool fixed = true;                           // it needs all its workers
    bool gathered = false;                       // all were placed once
    std::map<std::int64_t, std::int64_t> nodes;  // rank -> node
    std::int64_t step = 0;
    double done = 0;                    // of the step under way, 0 to 1
    double spent = 0;                   // GPU-seconds on it
    std::int64_t computes_from_ms = 0;  // while its workers gather: when they are done
    std::int64_t lacks_since_ms = 0;    // fixed, gathered and incomplete: since when
    std::int64_t asked = 0;             // its place in the line
  };

  void spend(std::int64_t until_ms);
  void change_nodes();
  void lose_node(std::int64_t node);
  void place();
  bool place(Process& process);
  void take_steps();
  void give_up_gangs();
  void exit(Process& process, api::Outcome outcome, const std::string& reason);
  bool computes(const Process& process) const;
  std::int64_t free_on(std::int64_t node) const;
  std::optional<std::int64_t> free_node() const;
  std::int64_t free_gpus() const;
  std::int64_t step_ends_ms(const Process& process) const;

  control::Clock& clock_;
  const std::vector<NodeChange> changes_;
  std::size_t next_change_ = 0;
  const Work work_;
  const Curve curve_;
  std::map<std::int64_t, std::int64_t> nodes_;  // node -> GPUs
  std::map<Id, Process> processes_;
  std::map<std::string, std::int64_t> checkpoints_;  // trial -> newest step
  std::set<std::string> changed_;                    // trials to report to the listener
  std::function<void(const std::string&)> listener_;
  std::int64_t spent_until_ms_;
  std::int64_t asked_ = 0;
  double offered_ = 0;
  double held_ = 0;
  double useful_ = 0;
  std::int64_t disruptions_ = 0;
};

}  // namespace fettle::sim
