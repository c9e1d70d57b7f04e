// Promotion: decides which trials resume if trials pause at rungs. It calls successive halving
// (halving.h), or populations and the replay of a schedule (population.h), whichever the Study
// uses. Pure functions of problem and history; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/search.h"

namespace fettle::search {

// Whether trials pause at rungs instead of running to resource.max.
bool promotes(const Problem& problem);

// The steps of the rungs, ascending, the last one resource.max; resource.max alone if trials do not
// pause.
std::vector<std::int64_t> ladder_of(const Problem& problem);

// Returns the stages at which the next `n` new trials begin. Requires promotes().
std::vector<Stage> first_stages(const Problem& problem, const History& history, std::size_t n);

// Returns the trial to resume next, if any; highest rungs first. `last`: no new trial will be
// created. Then, once nothing runs, the best of each rung is promoted even if it is one of few and,
// if it has failed, the next best, so that a trial reaches resource.max. Requires promotes().
std::optional<Promotion> next_promotion(const Problem& problem, const History& history, bool last);

// Whether new trials should wait until one has shown at which step programs first report. Requires
// promotes().
bool is_probing(const Problem& problem, const History& history);

// The trials that rest without a value after a probe ended in silence. Requires promotes().
std::vector<std::int64_t> silent_for_good(const Problem& problem, const History& history);

// Whether any trial runs: it was sent further than its facts show, and has not ended.
bool any_runs(const Problem& problem, const History& history);

}  // namespace fettle::search
