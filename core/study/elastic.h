// The elastic policy: how many workers each trial of a Study with spec.trial.workers {min, max}
// gets.
//
// Free GPUs are found by trying, so that the operator need not read nodes: a trial is grown, and a
// worker that gets no node in time is given up. The rules, in this order, one change at a time:
//  1. Give back. Workers that got no node for kGiveBackMs are no longer wanted. No trial of the
//     Study grows again before one of them has ended, or for kTryAgainMs.
//  2. Make room. A trial that cannot start for kMakeRoomMs is reduced to min, which counts as
//     having found no room: it may have lost its place in a queue by growing. If it wants min
//     already, the largest trial is halved. A waiting trial of another Study has the same effect,
//     for kTryAgainMs at most: a trial that still waits then waits for other nodes.
//  3. Grow. While nothing waits, the oldest trial below max is doubled, then the next one. So the
//     GPUs of a stopped trial go to the remaining trials. No trial grows in a queue that would
//     preempt it for that (Capacity::may_grow).
// A trial changes at most once in kSettleMs, except to give back. New trials begin with min, and
// before any trial grows. A trial that was scaled by hand keeps its size: the policy changes only
// sizes that it has set.
//
// The state of the policy is in the Trials (TrialSpec::sizing): it survives a restart. The global
// batch never follows the number of workers (spec.trial.trainer.training.globalBatch): the policy
// changes how long a trial takes, not its results.
// Pure; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::core {

inline constexpr std::int64_t kGiveBackMs = 20'000;
inline constexpr std::int64_t kMakeRoomMs = 30'000;
inline constexpr std::int64_t kSettleMs = 60'000;
inline constexpr std::int64_t kTryAgainMs = 300'000;

// Inputs of the policy besides the trials.
struct SizingView {
  std::int64_t min = 1;
  std::int64_t max = 1;
  std::int64_t ended = 0;  // trials of the Study that have ended
  // The time since which a worker of another Study has waited for a node; absent: none waits.
  std::optional<std::int64_t> waiting_elsewhere_ms;
  std::string who_waits = {};  // that Study; "" = not known
  bool may_grow = true;        // Capacity::may_grow
};

// One change of size. `sizing` is to be stored with it.
struct SizeChange {
  std::size_t trial = 0;  // position in the list that was handed in
  std::int64_t workers = 1;
  api::Sizing sizing;
  std::string reason;  // for people
};

struct SizePlan {
  std::optional<SizeChange> change;
  std::optional<std::int64_t> wake_at_ms;  // plan again then, even if nothing happens
};

// Returns the next change. `trials`: the active trials, by index.
SizePlan plan_sizes(const SizingView& view, const std::vector<api::TrialPtr>& trials,
                    std::int64_t now_ms);

}  // namespace fettle::core
