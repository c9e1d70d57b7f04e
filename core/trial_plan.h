// plan_trial: what to do next about a Trial (plan.h). Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/trial.h"
#include "core/plan.h"

namespace fettle::core {

// Plans one Trial.
TrialPlan plan_trial(const TrialView& view, std::int64_t now_ms);

// Plans one Trial that outlived its Study and will not be deleted: it ends (orphan_plan.cpp).
TrialPlan plan_orphan(const api::Trial& trial, const std::vector<Run>& runs, std::int64_t now_ms);

// Joins the report of a trial's newest run to the trial's own. Returns whether that changed it.
bool take_report(const api::Study& study, const api::Report& newest, api::TrialStatus& status);

}  // namespace fettle::core
