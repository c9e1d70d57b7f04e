// Replay of Studies whose trials take over from each other (search/rungs/population.h): pbt, pb2
// and schedule. Who began, who went on, who was replaced by a trial from whose checkpoint and with
// which parameters is decided again from what was known at the basis of each decision.
//
// What is not recorded is how much room there was: that the rule would have gone further at a basis
// is no difference. The order at one basis follows from the rule alone: the population is completed
// first, and then each move is made before the next one is looked for.
// Pure functions; usable from any thread.
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
