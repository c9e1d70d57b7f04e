// The parts of the page's data, for pages that follow a Study: all but insights_data() are cheap.
// Times are milliseconds since the Study began; a value that is absent or not finite is null. Pure.
#pragma once

#include "base/json.h"
#include "cli/views/reason.h"
#include "cli/views/view.h"

namespace fettle::cli {

Json study_data(const RunView& view);
// One row of "trials". `expected`: of expectations_of(); nullptr if nothing was expected.
Json trial_data(const RunView& view, const api::Trial& trial, const Expectation* expected);
// [[results, volume] ...]
Json volumes_data(const RunView& view);
// insight_data() of each objective. May take seconds.
Json insights_data(const RunView& view);

}  // namespace fettle::cli
