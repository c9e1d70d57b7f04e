// RungModel: a sampler that learns from trials that paused at different rungs (bohb; after Falkner
// et al. 2018, "BOHB"). An inner sampler gets one number for each trial: its place among all
// trials, as a normal score.
//
// Each bracket has its own model, which sees the values at the rung where the bracket begins and
// above, and proposes the points of the trials that begin there. So a trial that no low rung will
// decide on is not chosen by low rungs either: if low rungs mislead, the brackets that hedge
// against it (halving.h) do not inherit the error.
//
// Values at different rungs do not compare, so only ranks within a rung count: trials are ranked at
// the lowest rung; the trials that came to the next one exchange their places by their values
// there; and so on up. This corrects a trial that was lucky or poor early among its peers, and a
// poor one that ran to the end as a hedge stays poor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "search/search.h"

namespace fettle::search {

// Makes the inner sampler, for a problem with the places as its one objective.
using ModelFactory = std::function<Result<std::unique_ptr<Sampler>>(const Problem&)>;

// The samplers fit hyperparameters by schedule (../maths/fit_schedule.h). From the second revision
// on they first get the places of the time when a fit was due: every new value changes all places,
// and would change past fits. Errors: the factory's.
Result<std::unique_ptr<Sampler>> make_rung_model(const Problem& problem, ModelFactory factory);

// The places described above as scores, less is better, from the values at rung `first` and above;
// NaN for a trial without one.
std::vector<double> scores_from_rung(const Problem& problem, const History& history,
                                     std::int64_t first);
// The same from the first `events` of the history.
std::vector<double> scores_from_rung(const Problem& problem, const History& history,
                                     std::int64_t first, std::size_t events);

}  // namespace fettle::search
