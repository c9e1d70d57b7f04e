// Replay of Studies whose trials pause at rungs (search/rungs/promotion.h): at which rung each
// trial began and which were promoted, decided again from what was known at each basis.
//
// What is not recorded is how much room there was and whether more trials were to come. So a
// decision counts as the same if the rule makes it in that place, however many were made at once;
// and the promotions of the end (the best of each rung, once nothing else runs) if they come when
// the rule has no other left.
// Pure functions; usable from any thread.
#pragma once

#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/replay.h"

namespace fettle::core {

// Adds to out.promotions and out.differences. Does nothing where trials do not pause, or take over
// from each other (replay_population.h).
void replay_promotions(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                       Replay& out);

}  // namespace fettle::core
