// SearchPeriod: the rules by which a Study's trials are chosen, written into its status before the
// first of them: the algorithm for which `auto` stands, the budget that it was derived from, and
// the machine that computes. Each change of these begins a new period. So decisions can be replayed
// after the budget was raised or the Study was moved to another machine (docs/decisions/0038).
// Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/plan.h"
#include "core/study/ledger.h"

namespace fettle::core {

// A change of machine begins a period only among the first half: an operator that moves to and fro
// between two kinds of machine must not use up all periods.
inline constexpr std::size_t kMostForMachines = api::kMostSearchPeriods / 2;

// Whether a new period has to be written: none exists yet, the budget was changed, or another
// machine computes now (`computed_by`, search/space/fingerprint.h). False while the Study is
// suspended or over. The last of api::kMostSearchPeriods stays in force whatever changes.
bool needs_search_period(const api::Study& study, const Ledger& ledger,
                         const std::string& computed_by);

// Begins the period with the next trial. Adds an event if the algorithm changes, and a warning if
// trials are to pause and resume although their checkpoints do not outlive a pod.
StudyPlan plan_search_period(const api::Study& study, const Ledger& ledger,
                             const std::string& computed_by, api::Place place = api::Place::kLocal);

}  // namespace fettle::core
