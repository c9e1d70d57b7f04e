// plan_study: what to do next about a Study (plan.h). Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/plan.h"
#include "core/study/ledger.h"
#include "search/search.h"

namespace fettle::core {

// A reconcile plans twice: first facts, then decisions. So facts are stored before a sampler is
// asked, which may take seconds. Ledger and sampler are caches derived from the view; a caller that
// plans a Study repeatedly keeps both.

// Most writes of a plan. A Study with a thousand trials must not keep a worker, and its own status,
// waiting for a thousand calls. A plan that is cut (StudyPlan::is_cut) wakes at once, and the next
// one continues there.
inline constexpr std::int64_t kMaxWrites = 50;

// The facts that follow from the trials' statuses and are not recorded yet. First judges rungs that
// an earlier plan recorded and did not get to. Updates the ledger from the view.
StudyPlan plan_facts(const StudyView& view, Ledger& ledger, std::int64_t now_ms);

// Everything else: stops, promotions, new trials, the status. Requires that the plan of
// plan_facts() was not cut and was carried out, and the ledger as it left it: this plan rests on
// these facts alone (`basis`), whatever is stored meanwhile. `sampler` is made for the Study's
// problem (problem.h).
StudyPlan plan_decisions(const StudyView& view, search::Sampler& sampler, Ledger& ledger,
                         std::int64_t now_ms);

// Plans facts, then decisions.
StudyPlan plan_study(const StudyView& view, search::Sampler& sampler, Ledger& ledger,
                     std::int64_t now_ms);
StudyPlan plan_study(const StudyView& view, search::Sampler& sampler, std::int64_t now_ms);

// Plans a Study that cannot be searched (make_sampler refused it): it fails, saying why.
StudyPlan plan_refused_study(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                             const std::string& why, std::int64_t now_ms);

}  // namespace fettle::core
