#include "core/backlog.h"

#include <algorithm>

#include "core/conditions.h"

namespace fettle::core {

Backlog backlog_of(const Ledger& ledger) {
  Backlog backlog;
  for (const std::size_t position : ledger.active()) {
    const api::Trial& trial = *ledger.trials()[position];
    const api::StatusCondition* const waiting = find_condition(trial.status.conditions, "Waiting");
    const bool waits = waiting != nullptr && waiting->status;
    // One that runs and waits has ended, and its output cannot be read.
    if (trial.status.phase == api::TrialPhase::kRunning && !waits) {
      ++backlog.running;
      continue;
    }
    ++backlog.pending;
    if (!waits) continue;
    ++backlog.waiting;
    if (backlog.words.empty()) backlog.words = trial.metadata.name + ": " + waiting->message;
  }
  return backlog;
}

std::int64_t room_beside(const Backlog& backlog, std::int64_t free) {
  if (backlog.waiting == 0) return free;
  return std::min(free, std::max<std::int64_t>(0, backlog.running - backlog.pending));
}

std::string why_all_wait(const Backlog& backlog) {
  if (backlog.running > 0 || backlog.waiting == 0 || backlog.waiting < backlog.pending) return "";
  const std::string who = backlog.waiting == 1
                              ? "the only trial at work waits; "
                              : "all " + std::to_string(backlog.waiting) + " trials wait; ";
  return who + backlog.words;
}

}  // namespace fettle::core
