// Replay of Studies whose trials pause at rungs (search/rungs/promotion.h): at which rung each
// trial began and which were promoted, decided again from what was known at each basis.
//
// The number of free slots, and whether more trials were to come, were not recorded. So a decision
// counts as the same if the rule makes it at the same place in the order, however many were made at
// once. The last promotions (of the best at each rung, once no new trial comes) count as the same
// if the rule has no other promotion left when they come. Pure functions; usable from any thread.
#pragma once

#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/replay/replay.h"

namespace fettle::core {

// Adds to out.promotions and out.differences. Does nothing where trials do not pause, or take over
// from each other (replay_population.h).
void replay_promotions(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                       Replay& out);

}  // namespace fettle::core
