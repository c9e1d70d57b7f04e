// StudyEnd: whether a Study is over, and why. Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>

#include "api/study/study.h"
#include "core/study/ledger.h"
#include "core/study/spending.h"

namespace fettle::core {

struct StudyEnd {
  bool success = true;
  std::string reason;   // GoalReached, TooManyFailures, BudgetSpent, TrialsDone, SpaceExhausted,
                        // AllTrialsFailed, NoResult, NoneReachedEnd
  std::string message;  // for people
};

// Why all running trials must be stopped now: the goal is reached, too many trials have failed, or
// time or GPU-hours are spent. Once set it stays so until the spec changes.
std::optional<StudyEnd> current_end(const api::Study& study, const Ledger& ledger,
                                    const Spending& spending);

// The end of a Study in which nothing runs and nothing will be created. `cause`: from current_end;
// absent: all trials are done or, with `exhausted`, every point of the space was tried.
//
// If no trial reported the last step, the message says so. If trials are promoted, only the last
// step gives a result: a Study without one has failed.
StudyEnd final_end(const api::Study& study, const Ledger& ledger,
                   const std::optional<StudyEnd>& cause, bool exhausted);

}  // namespace fettle::core
