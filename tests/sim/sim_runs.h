// SimRuns: trials as scripts under the virtual clock. One thread.
//
// A run takes step_ms() a step, reports every step, keeps a checkpoint of each and continues from
// the trial's newest one. A Script defines its faults. Invariants checked all the time: a trial
// never has two living runs; a removed run never comes back; a completed trial never runs again.
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
#include "tests/sim/faults.h"

namespace fettle::sim {

// Trials take steps at different paces, so that they seldom act at the same time.
inline std::int64_t step_ms(std::int64_t index) { return 1'000 + 37 * (index % 5); }
inline constexpr std::int64_t kStartMs = 300;  // from start to running
inline constexpr std::int64_t kStopMs = 200;   // from SIGTERM to exit

enum class Fate { kFinish, kFail, kDisrupt, kOutOfMemory, kHang, kSilent, kQuit };

// The fate of run `run` of trial `index`: it meets `fate` after `steps` more steps. kSilent and
// kQuit both exit with 0: one without a report, the other with the reports so far.
struct Script {
  Fate fate = Fate::kFinish;
  std::int64_t steps = 0;
  std::int64_t every = 1;  // it reports at multiples of this step; above 1, never "final"
};
using Scripts = std::function<Script(std::int64_t index, std::int64_t run)>;
// Learning curve: the objective at a step, from the trial's parameters.
using Curve = std::function<double(const Json& parameters, std::int64_t step)>;

// Equal GPU cards. A trial holds a part of one card: the part it asks for, or all of it.
struct Cards {
  std::int64_t count = 0;  // 0: trials need none
  double bytes = 0;        // of each
  // Memory that a training plans for and that it uses, in bytes, by its parameters.
  std::function<double(const Json& parameters)> planned = {};
  std::function<double(const Json& parameters)> used = {};
};

class SimRuns : public control::Runs {
 public:
  SimRuns(Faults& faults, control::Clock& clock, Scripts scripts, Curve curve)
      : faults_(faults), clock_(clock), scripts_(std::move(scripts)), curve_(std::move(curve)) {}

  Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) override;
  Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) override;
  Status stop(const api::Trial& trial, std::int64_t run) override;
  Status remove(const api::Trial& trial, std::int64_t run) override;
  Result<std::vector<core::Run>> observe(const api::Trial& trial) override;
  core::Capacity capacity(const api::Study& study) override;
  void watch(std::function<void(const std::string& trial)> listener) override;

  // Forgets a deleted trial, with its runs and checkpoints.
  void forget(const std::string& trial);
  // Carries out due events, and calls the listener.
  void advance();
  // Returns when the next event is due; -1 = never without the controllers.
  std::int64_t next_ms() const;
  void lose_events() { lose_events_ = true; }
  // Lets no run start from now on, for this reason; "" ends that.
  void refuse_starts(std::string why) { refusal_ = std::move(why); }
  void set_capacity(std::int64_t trials) { capacity_.trials = trials; }
  void set_cards(Cards cards);
  // Like a cluster without a claim for the Study: a run that ends loses its checkpoints.
  void lose_checkpoints() { capacity_.place = api::Place::kCluster; }

  // Returns the steps that all runs have taken.
  std::int64_t steps_taken() const { return steps_taken_; }
  std::int64_t started() const { return static_cast<std::int64_t>(ever_.size()); }
  std::int64_t finished(const std::string& trial) const;  // runs that reached their last step
  std::size_t present() const { return processes_.size(); }
  std::int64_t most_at_once() const { return most_at_once_; }
  // Returns the most trials that held a card and trained at once.
  std::int64_t most_training() const { return most_training_; }

 private:
  struct Process {
    core::Run run;
    std::int64_t index = 0;
    std::int64_t until_step = 1;
    std::string metric;
    Json parameters;
    Script script;
    std::int64_t step = 0;      // reached so far
    std::int64_t next_ms = -1;  // time of its next action; -1 = never
    bool stopping = false;
    double asked = 0;               // bytes of a card
    std::optional<std::size_t> on;  // the card that holds its part
  };
  using Id = std::pair<std::string, std::int64_t>;  // trial, run

  void advance(const std::string& trial, Process& process);
  void take_step(const std::string& trial, Process& process);
  void report(Process& process) const;
  void exit(Process& process, api::Outcome outcome, const std::string& reason);
  bool find_card(Process& process);
  bool fits_card(Process& process);
  void check_alone(const std::string& trial) const;

  Faults& faults_;
  control::Clock& clock_;
  Scripts scripts_;
  Curve curve_;
  std::map<Id, Process> processes_;
  std::map<Id, int> ever_;                           // runs that were ever started
  std::map<std::string, std::int64_t> checkpoints_;  // trial -> newest step
  std::map<std::string, std::int64_t> finished_;
  std::set<std::string> quit_;  // trials with a run that exited with 0 before its last step
  std::function<void(const std::string&)> listener_;
  core::Capacity capacity_;
  std::int64_t most_at_once_ = 0;
  std::int64_t steps_taken_ = 0;
  Cards cards_;
  std::vector<double> free_;  // bytes of each card
  std::int64_t most_training_ = 0;
  std::string refusal_;
  bool lose_events_ = false;
};

}  // namespace fettle::sim
