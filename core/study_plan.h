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

// Plans one Study. `sampler` is that of the Study's problem (problem.h). Sampler and ledger are
// only caches of what follows from the view; whoever plans a Study again and again keeps both.
StudyPlan plan_study(const StudyView& view, search::Sampler& sampler, Ledger& ledger,
                     std::int64_t now_ms);
StudyPlan plan_study(const StudyView& view, search::Sampler& sampler, std::int64_t now_ms);

// Plans a Study that cannot be searched (make_sampler refused it): it fails, saying why.
StudyPlan plan_refused_study(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                             const std::string& why, std::int64_t now_ms);

}  // namespace fettle::core
