// The search problem that a Study poses. Pure functions; usable from any thread.
#pragma once

#include <cstdint>

#include "api/study/study.h"
#include "search/search.h"

namespace fettle::core {

// As the Study is now.
search::Problem problem_of(const api::Study& study);
// As it was when trial `next` was created on `basis` (search_period.h).
search::Problem problem_at(const api::Study& study, std::int64_t next, std::int64_t basis);

}  // namespace fettle::core
