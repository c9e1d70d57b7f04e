#include "core/study/elastic.h"

#include <algorithm>

#include "core/facts/run_records.h"

namespace fettle::core {

using api::Trial;
using api::TrialPtr;

namespace {

// The run that has not ended; null if all have.
const api::RunRecord* open_run(const Trial& trial) {
  const std::vector<api::RunRecord>& runs = trial.status.runs;
  return runs.empty() || runs.back().outcome ? nullptr : &runs.back();
}

std::int64_t running_workers(const Trial& trial) {
  const api::RunRecord* run = open_run(trial);
  return run == nullptr || run->running_ms == 0 ? 0 : workers_now(*run);
}

// The time since which some of its workers have waited for a node; 0 = all have one.
std::int64_t unplaced_since(const Trial& trial) {
  const api::RunRecord* run = open_run(trial);
  return run == nullptr ? 0 : run->unplaced_ms;
}

// A trial that is about to end or to pause keeps its size.
bool is_leaving(const Trial& trial) { return trial.spec.stop || trial.spec.suspend; }

std::string workers_text(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " worker" : " workers");
}

class SizePlanner {
 public:
  SizePlanner(const SizingView& view, const std::vector<TrialPtr>& trials, std::int64_t now_ms)
      : view_(view), trials_(trials), now_ms_(now_ms) {}

  SizePlan plan() {
    if (!give_back() && !make_room()) grow();
    return std::move(plan_);
  }

 private:
  bool give_back();
  bool make_room();
  void grow();

  // Whether `time_ms` + `wait_ms` has come; if not, the plan wakes then.
  bool is_due(std::int64_t time_ms, std::int64_t wait_ms) {
    const std::int64_t at_ms = time_ms + wait_ms;
    if (now_ms_ >= at_ms) return true;
    plan_.wake_at_ms = std::min(at_ms, plan_.wake_at_ms.value_or(at_ms));
    return false;
  }
  // Whether the policy may change the size of the trial at all.
  bool is_ours(const Trial& trial) const {
    const std::int64_t set = trial.spec.sizing ? trial.spec.sizing->workers : view_.min;
    return trial.spec.workers == set && !is_leaving(trial);
  }
  static std::int64_t changed_ms(const Trial& trial) {
    return trial.spec.sizing ? trial.spec.sizing->at_ms : 0;
  }
  bool waits(const Trial& trial) const {
    return running_workers(trial) == 0 && unplaced_since(trial) != 0 && !is_leaving(trial);
  }
  std::optional<std::size_t> largest_that_can_shrink();
  bool nothing_waits() const;
  bool has_found_no_room();
  void change(std::size_t trial, std::int64_t workers, std::string reason,
              std::optional<std::int64_t> no_room_after = std::nullopt) {
    plan_.change = {trial, workers, {now_ms_, workers, no_room_after}, std::move(reason)};
  }

  const SizingView& view_;
  const std::vector<TrialPtr>& trials_;
  const std::int64_t now_ms_;
  SizePlan plan_;
};

// Rule 1 (elastic.h). Returns whether a change was decided.
bool SizePlanner::give_back() {
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const Trial& trial = *trials_[i];
    const std::int64_t since_ms = unplaced_since(trial);
    const std::int64_t running = running_workers(trial);
    // A run needs min workers: with fewer it has none to give back.
    const bool can = is_ours(trial) && since_ms != 0 && running >= view_.min;
    if (!can || running >= trial.spec.workers) continue;
    // Counted from the newest change: a worker that was just asked for gets the whole time.
    if (!is_due(std::max(since_ms, changed_ms(trial)), kGiveBackMs)) continue;
    change(i, running,
           "continues with " + workers_text(running) + ": no place was found for " +
               std::to_string(trial.spec.workers - running) + " more",
           /*no_room_after=*/view_.ended);
    return true;
  }
  return false;
}

// The newest of the largest trials, because the oldest is nearest to its end.
std::optional<std::size_t> SizePlanner::largest_that_can_shrink() {
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const Trial& trial = *trials_[i];
    const bool can = is_ours(trial) && running_workers(trial) > view_.min;
    if (!can || !is_due(changed_ms(trial), kSettleMs)) continue;
    if (!largest || trial.spec.workers >= trials_[*largest]->spec.workers) largest = i;
  }
  return largest;
}

// Rule 2. Returns whether a change was decided.
bool SizePlanner::make_room() {
  std::optional<std::int64_t> since_ms = view_.waiting_elsewhere_ms;  // of the longest wait
  std::string who =
      view_.who_waits.empty() ? "a trial of another Study" : "a trial of Study " + view_.who_waits;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const Trial& trial = *trials_[i];
    if (!waits(trial)) continue;
    // From its newest change on, as in give_back().
    const std::int64_t unplaced_ms = std::max(unplaced_since(trial), changed_ms(trial));
    const bool can_shrink = is_ours(trial) && trial.spec.workers > view_.min;
    if (can_shrink && is_due(unplaced_ms, kMakeRoomMs)) {
      change(i, view_.min,
             "begins with " + workers_text(view_.min) + ": there is no place for " +
                 std::to_string(trial.spec.workers),
             /*no_room_after=*/view_.ended);
      return true;
    }
    // It cannot shrink, or not yet: others may have to make room for it.
    if (since_ms && *since_ms <= unplaced_ms) continue;
    since_ms = unplaced_ms;
    who = trial.metadata.name;
  }
  if (!since_ms || !is_due(*since_ms, kMakeRoomMs)) return false;
  // GPUs that were freed a moment ago may not have been taken yet.
  for (const TrialPtr& trial : trials_) {
    if (!is_due(changed_ms(*trial), kMakeRoomMs)) return false;
  }
  const std::optional<std::size_t> largest = largest_that_can_shrink();
  if (!largest) return false;
  const std::int64_t workers = std::max(view_.min, trials_[*largest]->spec.workers / 2);
  change(*largest, workers, "continues with " + workers_text(workers) + ": " + who + " waits");
  return true;
}

bool SizePlanner::nothing_waits() const {
  if (view_.waiting_elsewhere_ms) return false;
  return std::ranges::all_of(trials_, [](const TrialPtr& trial) {
    return is_leaving(*trial) ||
           (unplaced_since(*trial) == 0 && running_workers(*trial) == trial->spec.workers);
  });
}

// Whether growing found no room, and since then no trial has ended and kTryAgainMs have not passed.
bool SizePlanner::has_found_no_room() {
  return std::ranges::any_of(trials_, [this](const TrialPtr& trial) {
    const std::optional<api::Sizing>& sizing = trial->spec.sizing;
    const bool refused = sizing && sizing->no_room_after == view_.ended;
    return refused && !is_due(sizing->at_ms, kTryAgainMs);
  });
}

// Rule 3.
void SizePlanner::grow() {
  if (!view_.may_grow || !nothing_waits() || has_found_no_room()) return;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const Trial& trial = *trials_[i];
    if (!is_ours(trial) || trial.spec.workers >= view_.max) continue;
    if (!is_due(changed_ms(trial), kSettleMs)) continue;
    const std::int64_t workers = std::min(view_.max, 2 * trial.spec.workers);
    change(i, workers, "grows to " + workers_text(workers) + ": nothing waits");
    return;
  }
}

}  // namespace

SizePlan plan_sizes(const SizingView& view, const std::vector<TrialPtr>& trials,
                    std::int64_t now_ms) {
  return SizePlanner(view, trials, now_ms).plan();
}

}  // namespace fettle::core
