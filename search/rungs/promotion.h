// Promotion: which trials resume where trials pause at rungs. It asks successive halving
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

// The steps of the rungs, ascending, the last one resource.max; that one alone where trials do not
// pause.
std::vector<std::int64_t> ladder_of(const Problem& problem);

// Where the next `n` new trials begin. Only where promotes().
std::vector<Stage> first_stages(const Problem& problem, const History& history, std::size_t n);

// The trial that is to resume next, if any; highest rungs first. `last`: no new trial will be
// created. Then, once nothing runs, the best of each rung is promoted even if it is one of few and,
// where that one has failed, the next best, so that a trial reaches resource.max. Only where
// promotes().
std::optional<Promotion> next_promotion(const Problem& problem, const History& history, bool last);

// Whether new trials should wait until one has shown at which step programs first report. Only
// where promotes().
bool is_probing(const Problem& problem, const History& history);

// The trials that rest without a value although a probe has come to its end in silence. Only where
// promotes().
std::vector<std::int64_t> silent_for_good(const Problem& problem, const History& history);

// Whether a trial runs: it was sent further than what is known of it, and has not ended.
bool any_runs(const Problem& problem, const History& history);

}  // namespace fettle::search
