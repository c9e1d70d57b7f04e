// Replay of replicates: whose turn it was (replicates.h), decided again from what was known at the
// basis of each. Pure functions; usable from any thread.
//
// When the search was over was not recorded: a budget may have been raised since. So it is only
// verified that no trial of the search was on its way. What a deleted trial was is not known
// either: after one the order of the replicates is not decided again.
#pragma once

#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/replay.h"

namespace fettle::core {

// Adds to out.replicates and out.differences.
void replay_replicates(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                       Replay& out);

}  // namespace fettle::core
