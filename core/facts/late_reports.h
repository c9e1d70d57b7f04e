// Programs that first report the objective after the lowest rung, such as one that evaluates every
// second epoch while trials pause after the first. Their silence there is no failure.
//
// The first trial that is silent at its rung is sent on as a probe (search/rungs/halving.h), and
// the others wait for it. The Study's status keeps the step of its first report, and from then on
// trials begin at a rung that is not below it. If the probe ends in silence, the trials that paused
// without a value have failed, too (StudyPlanner::fail_silent). Pure functions; usable from any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "search/search.h"

namespace fettle::core {

// Whether a trial without a value at `until_step` may report one at a later rung: while no trial
// has reported or failed, and below the first report.
bool may_report_later(const api::Study& study, std::int64_t until_step);

// The first step at which trials reported the first objective; absent unless it comes after the
// first rung. Reads the first trials only.
std::optional<std::int64_t> first_late_report(const search::Problem& problem,
                                              const std::vector<api::TrialPtr>& trials);

}  // namespace fettle::core
