// The elastic policy: how many workers each trial of a Study with spec.trial.workers {min, max}
// gets.
//
// Free GPUs are found by trying, so nobody reads nodes: a trial is grown, and a worker that finds
// no place in time is given back. The rules, in this order, one change at a time:
//  1. Give back. Workers that have found no place for kGiveBackMs are no longer wanted. Nothing of
//     the Study grows again before one of its trials has ended, or for kTryAgainMs.
//  2. Make room. A trial that cannot start for kMakeRoomMs wants fewer workers itself; if it wants
//     min already, the largest trial is halved. Trials of other Studies count as much.
//  3. Grow. While nothing waits, the oldest trial below max is doubled; then the next one. So what
//     a stopped trial had goes to those that remain.
// A trial changes at most once in kSettleMs, but for what it gives back. New trials begin with min,
// and before anything grows. Whoever scales a trial by hand keeps it: the policy leaves alone what
// it has not set itself.
//
// The state of the policy is in the Trials (TrialSpec::sizing), so a new process continues it.
// The global batch never follows the number of workers (spec.trial.trainer.training.globalBatch):
// the policy changes how long a trial takes, not what it learns.
// Pure; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

inline constexpr std::int64_t kGiveBackMs = 20'000;
inline constexpr std::int64_t kMakeRoomMs = 30'000;
inline constexpr std::int64_t kSettleMs = 60'000;
inline constexpr std::int64_t kTryAgainMs = 300'000;

// Whether the workers of the Study's trials follow the policy: min < max, and spec.trial.workers
// does not leave it to people. Images of others take part where the Study says so: they must be
// able to gather anew while they train.
bool sizes_itself(const api::StudySpec& spec);

// What the policy sees beside the trials.
struct SizingView {
  std::int64_t min = 1;
  std::int64_t max = 1;
  std::int64_t ended = 0;  // trials of the Study that have ended
  // Since when a worker of another Study has found no place; absent: all have one.
  std::optional<std::int64_t> waiting_elsewhere_ms;
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

// The next change. `trials`: those that are active, by index.
SizePlan plan_sizes(const SizingView& view, const std::vector<api::TrialPtr>& trials,
                    std::int64_t now_ms);

}  // namespace fettle::core
