// Spending: the time and GPU-hours that a Study's runs have used, from the run records.
// Pure functions and a value; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/interval_union.h"

namespace fettle::core {

struct Spending {
  double active_seconds = 0;  // in which at least one trial was running
  double gpu_hours = 0;
  double gpus_in_use = 0;  // now: how fast gpu_hours grows
  bool running = false;    // active_seconds is growing now
};

// Whether all runs of the trial have ended, so that its spending no longer depends on the time.
bool is_settled(const api::Trial& trial);

// Whether the intervals of all ended runs of `before` are among those of `after`. They are not if
// records were pruned, since pruned runs count as one interval right before the oldest record, and
// may not be if a queue preempted a run again.
bool keeps_time(const api::Trial& before, const api::Trial& after);

// SpendingTally: the spending of settled trials, updated as they come and change.
class SpendingTally {
 public:
  void add(const api::Trial& settled);
  // Subtracts what was added, but not its intervals, which a union cannot give back. So the caller
  // must add, or pass as unsettled, a later state of the trial that keeps_time().
  void remove(const api::Trial& settled);

  // With what the trials that are not settled have spent until `now_ms`.
  Spending spending(const api::Study& study, const std::vector<const api::Trial*>& unsettled,
                    std::int64_t now_ms) const;
  // Worker-seconds that ended trials took on average; nothing before the first. `unsettled`: as for
  // spending(); a trial of them may have ended, too.
  std::optional<double> average_seconds(const std::vector<const api::Trial*>& unsettled,
                                        std::int64_t now_ms) const;

 private:
  void count(const api::Trial& trial, std::int64_t sign);

  IntervalUnion covered_;
  // What the GPUs of a worker were is in the records, or as the Study says.
  std::int64_t settled_gpu_ms_ = 0;  // of the former: GPU time
  std::int64_t settled_ms_ = 0;      // of the latter: time of all workers
  std::int64_t ended_ms_ = 0;        // time of all workers of those trials that have ended
  std::int64_t ended_ = 0;
};

// Worker-seconds that the trial still takes, if it takes `average` of them in all.
double seconds_left(const api::Trial& trial, double average, std::int64_t now_ms);

// What a trial has cost by now: the seconds of all workers of all its runs, failed ones too, times
// the GPUs of a worker, where it has some.
double cost_of(const api::Study& study, const api::Trial& trial, std::int64_t now_ms);

// What all trials together may cost, in the unit of cost_of, as far as the budget limits it.
std::optional<double> max_cost_of(const api::StudySpec& spec);

}  // namespace fettle::core
