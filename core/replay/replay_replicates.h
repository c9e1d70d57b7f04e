// Replay of replicates: decides again which leader was next (replicates.h), from the facts up to
// the basis of each. Pure functions; usable from any thread.
//
// The end of the search was not recorded, and a budget may have been raised since. So replay only
// verifies that no trial of the search was active. Deleted trials are unknown as well: after one,
// the order of the replicates is not decided again.
#pragma once

#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/replay/replay.h"

namespace fettle::core {

// Adds to out.replicates and out.differences.
void replay_replicates(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                       Replay& out);

}  // namespace fettle::core
