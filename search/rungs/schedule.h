// Promotion where trials pause: asynchronous successive halving by promotion (Li et al. 2020, "A
// system for massively parallel hyperparameter tuning") in the brackets of Hyperband (Li et al.
// 2018). A trial begins at the rung of its bracket, runs to that rung's step and pauses; when it is
// among the best 1/eta of all values at its rung it is promoted to the next one, and resumes from
// its checkpoint. Values are compared only within a rung, whichever bracket they come from.
//
// Brackets hedge against early values that say little. hyperband creates trials in the paper's
// proportions. bohb and dehb keep a quarter of the work for trials that run to the end whatever the
// rungs say, and share the rest out by how well each rung has been seen to predict the end (rank
// correlations): it is trusted with that share of what the rungs below it left over.
//
// Populations and schedules (population.h) pause at rungs, too, but by rules of their own.
//
// All of this is a pure function of problem and history. Usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/search.h"

namespace fettle::search {

// Whether trials pause at rungs instead of running to resource.max.
bool promotes(const Problem& problem);

// Where the next `n` new trials begin. Only where promotes().
std::vector<Stage> first_stages(const Problem& problem, const History& history, std::size_t n);

struct Promotion {
  std::int64_t trial = 0;
  Stage stage;         // the next one
  std::string reason;  // for people: "rung 1 (step 3): 0.71 is among the best 4 of 12"
};

// The trial that is to resume next, if any; highest rungs first. `last`: no new trial will be
// created. Then, once nothing runs, the best of each rung is promoted even if it is one of few and,
// where that one has failed, the next best, so that a trial reaches resource.max. Only where
// promotes().
std::optional<Promotion> next_promotion(const Problem& problem, const History& history, bool last);

// Whether a trial runs: it was sent further than what is known of it, and has not ended.
bool any_runs(const Problem& problem, const History& history);

// ---- Hyperband's table -------------------------------------------------------------------------

// The steps of the rungs, ascending: max, max/eta, max/eta^2 ... down to `min`, rounded; the last
// one is resource.max.
std::vector<std::int64_t> rung_ladder(const api::Resource& resource, double reduction_factor);

// Trials that begin in the bracket at `rung` in one round of Hyperband, of `rungs` rungs: all
// brackets get about the same work (Table 1 of the paper).
std::int64_t bracket_size(std::int64_t rung, std::int64_t rungs, double reduction_factor);

}  // namespace fettle::search
