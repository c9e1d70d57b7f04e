// What chooses a Study's trials, written into its status before it does: what `auto` stands for,
// the budget that this rests on, and the machine that computes (api::SearchPeriod, one for each
// change of them). So a budget that is raised, or a restart elsewhere, leaves the decisions that
// were taken as they can be taken again (docs/decisions/0038).
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/ledger.h"
#include "core/plan.h"

namespace fettle::core {

// Whether what is in force differs from what is written down: nothing is yet, budget.trials was
// changed, or something else computes (`computed_by`, search/space/fingerprint.h). Not while the
// Study is suspended or over. Of api::kMostSearchPeriods the last one stays in force whatever
// changes.
bool needs_search_period(const api::Study& study, const Ledger& ledger,
                         const std::string& computed_by);

// Writes it down, from the next trial on. That another algorithm chooses from there is an event.
StudyPlan plan_search_period(const api::Study& study, const Ledger& ledger,
                             const std::string& computed_by);

}  // namespace fettle::core
