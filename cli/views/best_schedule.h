// The schedule that led to a study's best trial (fettle best --schedule): for people, for machines,
// and as a Study that trains it again. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "cli/views/view.h"

namespace fettle::cli {

// Requires a study with a best trial (view.study.status.best).
std::string render_schedule(const RunView& view);
// {"study", "trial", "legs": [{"trial", "from", "until", "seed", "parameters", "objective"}]};
// `objective` is the value of the first one at `until`, null if it is not known.
Json schedule_json(const RunView& view);
// Errors: the first trials of the schedule were deleted.
Result<std::string> schedule_study(const RunView& view);

}  // namespace fettle::cli
