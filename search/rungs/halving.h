// Asynchronous successive halving by promotion (Li et al. 2020, "A system for massively parallel
// hyperparameter tuning") in the brackets of Hyperband (Li et al. 2018). A trial begins at the rung
// of its bracket, runs to that rung's step and pauses. When it is among the best 1/eta of all
// values at its rung it is promoted to the next one, and resumes from its checkpoint. Values are
// compared only within a rung, whichever bracket they come from.
//
// Brackets hedge against early values that predict little. hyperband creates trials in the paper's
// proportions. bohb keeps a quarter of the work for trials that run to the end whatever the rungs
// say. It divides the rest by how well each rung has predicted the end so far (rank correlations):
// a rung is trusted with that share of the work that the rungs below it left over.
//
// Pure functions of problem and history; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "search/rungs/rung_table.h"
#include "search/search.h"

namespace fettle::search {

// Whether trials pause at rungs by successive halving. The functions below require it; `table` is
// the table of the history at halving_ladder().
bool halves(const Problem& problem);

// The steps of the rungs, ascending; the last one is resource.max.
std::vector<std::int64_t> halving_ladder(const Problem& problem);
// Returns the stages at which the next `n` new trials begin.
std::vector<Stage> halving_stages(const Problem& problem, const RungTable& table,
                                  const History& history, std::size_t n);
// The trial to resume next, if any; `last` as in next_promotion (promotion.h).
std::optional<Promotion> next_halving(const Problem& problem, const RungTable& table,
                                      const History& history, bool last);

// ---- Hyperband's table -------------------------------------------------------------------------

// The steps of the rungs, ascending: max, max/eta, max/eta^2 ... down to `min`, rounded; the last
// one is resource.max.
std::vector<std::int64_t> rung_ladder(const api::Resource& resource, double reduction_factor);

// Trials that begin in the bracket at `rung` in one round of Hyperband, of `rungs` rungs: all
// brackets get about the same work (Table 1 of the paper).
std::int64_t bracket_size(std::int64_t rung, std::int64_t rungs, double reduction_factor);

// Whether new trials wait for a probe: a trial that was silent at a rung where no trial has
// reported is sent further, or about to be.
bool is_probing(const RungTable& table, const History& history);

// The trials that rest without a value after a probe ended in silence: no value will come.
std::vector<std::int64_t> silent_for_good(const RungTable& table, const History& history);

}  // namespace fettle::search
