// Replay of Studies whose trials take over from each other (search/rungs/population.h): pbt, pb2
// and schedule. Which trials began, were promoted or were replaced (by which trial, from whose
// checkpoint, with which parameters) is decided again from what was known at each basis.
//
// How much room there was is not recorded: if the rule would have decided more at a basis, that is
// no difference. The order at one basis follows from the rule alone: the population is completed
// first, then each move is made before the next one is sought. Pure functions; usable from any
// thread.
#pragma once

#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "core/replay.h"

namespace fettle::core {

// Adds to out.promotions, out.replacements and out.differences. Does nothing where trials do not
// take over from each other.
void replay_population(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                       Replay& out);

}  // namespace fettle::core
