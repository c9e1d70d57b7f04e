// Replay of Studies whose trials take over from each other (search/rungs/population.h): pbt, pb2
// and schedule. Which trials began, were promoted or were replaced (by which trial, from whose
// checkpoint, with which parameters) is decided again from what was known at each basis.
//
// The number of free slots was not recorded, so it is no difference if the rule would have decided
// more at a basis. The order of the decisions at one basis follows from the rule: the population is
// completed first; then one move at a time is decided and made. Pure functions; usable from any
// thread.
#pragma once

#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/replay/replay.h"

namespace fettle::core {

// Adds to out.promotions, out.replacements and out.differences. Does nothing where trials do not
// take over from each other.
void replay_population(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                       Replay& out);

}  // namespace fettle::core
