// plan_trial: what to do next about a Trial (plan.h). Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/trial/trial.h"
#include "core/plan.h"

namespace fettle::core {

// Plans one Trial.
TrialPlan plan_trial(const TrialView& view, std::int64_t now_ms);

// Plans one Trial that outlived its Study and will not be deleted: it ends (orphan_plan.cpp).
TrialPlan plan_orphan(const api::Trial& trial, const std::vector<Run>& runs, std::int64_t now_ms);

}  // namespace fettle::core
