// The end of a Study's time to live: it is deleted spec.ttlAfterFinished after it ended.
// Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "api/study/study.h"
#include "core/plan.h"

namespace fettle::core {

// Plans a Study that is over: its deletion, once it is due. A day before that it warns, once, if
// the checkpoints go with the Study because it owns their claim.
StudyPlan plan_expiry(const api::Study& study, std::int64_t now_ms);

}  // namespace fettle::core
