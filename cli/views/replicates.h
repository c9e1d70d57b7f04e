// Texts about replicates, the further runs of a Study's leaders, for people. Pure.
#pragma once

#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"

namespace fettle::cli {

// "repeats digits-3"; "" for a trial of the search.
std::string repeats_text(const api::Trial& trial);

// "0.912 measured; 0.905 ± 0.004 in 5 further runs, 1 more failed"; "" while none has ended.
std::string replicates_text(const api::BestTrial& best);

// {"runs", "mean", "deviation", "failed"}; null if a number is absent.
Json replicates_json(const api::ReplicateResults& results);

}  // namespace fettle::cli
