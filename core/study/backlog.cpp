#include "core/study/backlog.h"

#include <algorithm>

#include "core/conditions.h"

namespace fettle::core {

Backlog backlog_of(const Ledger& ledger) {
  Backlog backlog;
  for (const std::size_t position : ledger.active()) {
    const api::Trial& trial = *ledger.trials()[position];
    const bool running = trial.status.phase == api::TrialPhase::kRunning;
    ++(running ? backlog.running : backlog.pending);
    const api::StatusCondition* const waiting = find_condition(trial.status.conditions, "Waiting");
    if (waiting == nullptr || !waiting->status) continue;
    ++backlog.told;
    // A running trial waits for other workers, or for its output to be read (trial_plan.cpp).
    const bool for_room = !running && waiting->reason != kBackOff && waiting->reason != kStarting;
    if (for_room) ++backlog.waiting;
    if (backlog.words.empty()) backlog.words = trial.metadata.name + ": " + waiting->message;
  }
  return backlog;
}

std::int64_t room_beside(const Backlog& backlog, std::int64_t free) {
  if (backlog.waiting == 0) return free;
  return std::min(free, std::max<std::int64_t>(0, backlog.running - backlog.pending));
}

std::string why_all_wait(const Backlog& backlog) {
  if (backlog.told == 0 || backlog.told < backlog.running + backlog.pending) return "";
  const std::string who = backlog.told == 1
                              ? "the only trial at work waits; "
                              : "all " + std::to_string(backlog.told) + " trials wait; ";
  return who + backlog.words;
}

}  // namespace fettle::core
