// A Study of many trials as the operator's caches hold it: most have ended, some run. For
// measurements; everything is made up, and as large as it would be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "base/json.h"

namespace fettle::scale {

// `ended` trials that are done and recorded, and behind them `running` ones, which is all that
// there is room for. The status was written at `now_ms`.
api::Study crowded_study(const std::string& algorithm, std::int64_t ended, std::int64_t running,
                         std::int64_t now_ms);

// Trial `index` as the API server has it: ended with a curve of ten points and the fact of it, or
// running since a second.
Json ended_trial(std::int64_t index, std::int64_t now_ms);
Json running_trial(std::int64_t index, std::int64_t now_ms);

}  // namespace fettle::scale
