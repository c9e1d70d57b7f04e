// plan_study: what to do next about a Study (plan.h). Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/ledger.h"
#include "core/plan.h"
#include "search/search.h"

namespace fettle::core {

// A reconcile plans twice: first what is learnt, then what follows from it. So facts can be stored
// before a sampler is asked, which may take seconds. Ledger and sampler are only caches of what
// follows from the view; whoever plans a Study again and again keeps both.

// Facts that the trials show and do not list yet. Before more is learnt, rungs are judged that an
// earlier plan recorded and did not get to. Updates the ledger from the view.
StudyPlan plan_facts(const StudyView& view, Ledger& ledger, std::int64_t now_ms);

// Everything else: stops, promotions, new trials, the status. The ledger is as plan_facts() left
// it, whose plan was carried out: its facts are all that this plan rests on (`basis`), whatever is
// stored meanwhile. `sampler` is that of the Study's problem (problem.h).
StudyPlan plan_decisions(const StudyView& view, search::Sampler& sampler, Ledger& ledger,
                         std::int64_t now_ms);

// Both, one after the other.
StudyPlan plan_study(const StudyView& view, search::Sampler& sampler, Ledger& ledger,
                     std::int64_t now_ms);
StudyPlan plan_study(const StudyView& view, search::Sampler& sampler, std::int64_t now_ms);

// Plans a Study that cannot be searched (make_sampler refused it): it fails, saying why.
StudyPlan plan_refused_study(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                             const std::string& why, std::int64_t now_ms);

}  // namespace fettle::core
