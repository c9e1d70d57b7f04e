// Spending: the time and GPU-hours that a Study's runs have used, from the run records.
// Pure functions and a value; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/facts/interval_union.h"

namespace fettle::core {

struct Spending {
  double active_seconds = 0;  // in which at least one trial was running
  double gpu_hours = 0;
  double gpus_in_use = 0;  // now: how fast gpu_hours grows
  bool running = false;    // active_seconds is growing now
};

// Whether all runs of the trial have ended, so that its spending no longer depends on the time.
bool is_settled(const api::Trial& trial);

// Whether `after` has the intervals of all ended runs of `before`. It does not if records were
// pruned, since pruned runs count as one interval right before the oldest record, and may not if a
// queue preempted a run again.
bool keeps_time(const api::Trial& before, const api::Trial& after);

// SpendingTally: the spending of a list of trials, updated as they come and change. Ended runs are
// added once; only trials with a run that has not ended are read for each answer.
class SpendingTally {
 public:
  // The trial at `position` has become `after`; `before`: nullptr if it is new.
  void update(std::size_t position, const api::Trial* before, const api::Trial& after);
  // Call after updates and before the answers below. Adds everything anew if a trial no longer
  // keeps_time(), since a union of intervals cannot give one back.
  void refresh(const std::vector<api::TrialPtr>& trials);

  // The spending of all trials until `now_ms`.
  Spending spending(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                    std::int64_t now_ms) const;
  // Mean worker-seconds of the trials that ended; absent before the first.
  std::optional<double> average_seconds(const std::vector<api::TrialPtr>& trials,
                                        std::int64_t now_ms) const;

 private:
  void add(const api::Trial& settled);
  void count(const api::Trial& settled, std::int64_t sign);

  IntervalUnion covered_;
  std::set<std::size_t> unsettled_;  // positions
  bool is_stale_ = false;
  // The GPUs of a worker come from the record or, if it has none, from the Study.
  std::int64_t settled_gpu_ms_ = 0;  // from records: GPU time
  std::int64_t settled_ms_ = 0;      // from the Study: time of all workers
  std::int64_t ended_ms_ = 0;        // time of all workers of ended trials
  std::int64_t ended_ = 0;
};

// Worker-seconds that the trial still takes, if it takes `average` of them in all.
double seconds_left(const api::Trial& trial, double average, std::int64_t now_ms);

// The most that all trials together may cost, in the unit of cost_of; absent if the budget sets no
// limit.
std::optional<double> max_cost_of(const api::StudySpec& spec);

}  // namespace fettle::core
