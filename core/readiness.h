// The conditions by which general tools judge a Study: Ready, Reconciling and Stalled, as kstatus
// reads them (Flux, kpt; docs/decisions/0056).
//
//   InProgress  Reconciling is true, Ready is false: nothing runs yet, trials wait, or it suspends
//   Current     Ready is true: trials run, it is suspended as its spec says, or it has succeeded
//   Failed      Stalled is true, Ready is false: it has failed, or its writes are refused
//
// Like a Job, a Study is Current while it runs; Succeeded and Failed say whether it is over.
// Derived from the other conditions. Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "api/study/study.h"

namespace fettle::core {

// Whether the condition is one of these three. To people they only repeat the others.
bool is_readiness(const api::StatusCondition& condition);

void set_readiness(api::StudyStatus& status, std::int64_t now_ms);

}  // namespace fettle::core
