// StudyEnd: whether a Study is over, and why. Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>

#include "api/study.h"
#include "core/ledger.h"
#include "core/spending.h"

namespace fettle::core {

struct StudyEnd {
  bool success = true;
  std::string reason;   // GoalReached, TooManyFailures, BudgetSpent, TrialsDone, SpaceExhausted,
                        // AllTrialsFailed, NoResult, NoneReachedEnd
  std::string message;  // for people
};

// Why the trials that still run are to be stopped now: the goal is reached, too many have failed,
// or time or GPU-hours are spent. Once true it stays true until the spec changes.
std::optional<StudyEnd> current_end(const api::Study& study, const Ledger& ledger,
                                    const Spending& spending);

// The end of a Study in which nothing runs and nothing will be created. `cause` is what
// current_end said; without it the trials or the space (`exhausted`) have come to their end.
//
// If no trial reported the last step, the message says so. Where trials are promoted it is what all
// the promoting was for: then a Study without any result has failed.
StudyEnd final_end(const api::Study& study, const Ledger& ledger,
                   const std::optional<StudyEnd>& cause, bool exhausted);

}  // namespace fettle::core
