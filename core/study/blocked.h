// Why a valid Study does not proceed: trials of an earlier Study of its name are still being
// deleted, or its writes are refused repeatedly.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/study/study.h"
#include "core/plan.h"

namespace fettle::core {

// The reason of the condition Waiting.
inline constexpr const char* kEarlierTrials = "EarlierTrials";

// Plans a Study without trials while `earlier` trials of a deleted Study still have the names that
// its own trials will get: the plan creates nothing, and the condition Waiting says why. Each
// deletion of a trial causes another reconcile.
StudyPlan plan_waiting_study(const api::Study& study, std::int64_t earlier, std::int64_t now_ms);

bool is_blocked(const api::StudyStatus& status);
// Message of the condition Blocked; "" if the Study has no such condition.
std::string blocked_message(const api::StudyStatus& status);

// The Study's status with the condition Blocked: true with the message `words`, false if they are
// empty.
api::StudyStatus blocked_status(const api::Study& study, const std::string& words,
                                std::int64_t now_ms);

}  // namespace fettle::core
