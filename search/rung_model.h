// RungModel: a sampler that learns from trials that paused at different rungs (bohb and dehb; after
// Falkner et al. 2018, "BOHB"). Another sampler is fed with one number a trial: its place among all
// trials, as a normal score.
//
// Values at different rungs do not compare, so only ranks within a rung count: trials are ranked at
// the lowest rung that is worth trusting; those that came to the next rung share out the places
// they hold by their values there; and so on up. A trial that was lucky or poor early is thereby
// put right among its like, and a poor one that ran to the end for the sake of hedging stays poor.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "search/search.h"

namespace fettle::search {

// Makes the sampler that is fed, for a problem with the places as its one objective.
using ModelFactory = std::function<Result<std::unique_ptr<Sampler>>(const Problem&)>;

// Errors: those of the factory.
Result<std::unique_ptr<Sampler>> make_rung_model(const Problem& problem, ModelFactory factory);

// The places described above as scores, less is better, NaN for a trial without a value.
std::vector<double> scores_across_rungs(const Problem& problem, const History& history);

}  // namespace fettle::search
