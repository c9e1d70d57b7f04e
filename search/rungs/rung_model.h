// RungModel: a sampler that learns from trials that paused at different rungs (bohb, after
// Falkner et al. 2018). Other samplers are fed with one number a trial: its place among all
// trials, as a normal score.
//
// Each bracket has a model of its own, which knows what is known at the rung where the bracket
// begins and above, and proposes the points of the trials that begin there. So a trial that no low
// rung will decide on is not chosen by low rungs either: where those mislead, the brackets that
// hedge against it (halving.h) do not inherit the error.
//
// Values at different rungs do not compare, so only ranks within a rung count: trials are ranked at
// the lowest rung; those that came to the next one share out the places they hold by their values
// there; and so on up. A trial that was lucky or poor early is thereby put right among its like,
// and a poor one that ran to the end for the sake of hedging stays poor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "search/search.h"

namespace fettle::search {

// Makes the sampler that is fed, for a problem with the places as its one objective.
using ModelFactory = std::function<Result<std::unique_ptr<Sampler>>(const Problem&)>;

// The samplers fit hyperparameters by schedule (../maths/fit_schedule.h). From the second revision
// on they are told first which places trials had when a fit was due: every new value changes the
// places of all, and would change past fits. Errors: those of the factory.
Result<std::unique_ptr<Sampler>> make_rung_model(const Problem& problem, ModelFactory factory);

// The places described above as scores, less is better, from the values at rung `first` and above;
// NaN for a trial without one.
std::vector<double> scores_from_rung(const Problem& problem, const History& history,
                                     std::int64_t first);
// The same from the first `events` of the history.
std::vector<double> scores_from_rung(const Problem& problem, const History& history,
                                     std::int64_t first, std::size_t events);

}  // namespace fettle::search
