// A Study of many trials in the operator's caches: most have ended, some run. For measurements; all
// data are made up, in realistic sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"

namespace fettle::scale {

// Returns a Study with `ended` trials that are done and recorded, and after them `running` more,
// the most that may run. The status was written at `now_ms`.
api::Study crowded_study(const std::string& algorithm, std::int64_t ended, std::int64_t running,
                         std::int64_t now_ms);

// Return trial `index` in the form of the API server: ended with a curve of ten points and its
// fact, or running for a second.
Json ended_trial(std::int64_t index, std::int64_t now_ms);
Json running_trial(std::int64_t index, std::int64_t now_ms);

}  // namespace fettle::scale
