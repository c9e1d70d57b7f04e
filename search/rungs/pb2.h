// pb2: the parameters of a replacement, chosen by a time-varying Gaussian process bandit
// (Parker-Holder et al. 2020, "Provably efficient online hyperparameter optimization with
// population-based bandits"; settings of the authors' implementation in Ray).
//
// The model predicts the change of the objective over an interval, given the parameters used in it
// and its number. Two things differ from the paper: changes are taken as normal scores within their
// interval, since a training improves a thousandfold faster at its start than at its end and since
// values may be anything; and time is one more input of the kernel, with a learnt length scale
// instead of a fixed rate of forgetting. Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/philox.h"
#include "search/rungs/rung_table.h"
#include "search/search.h"
#include "search/space/space.h"

namespace fettle::search {

// The point of the largest upper confidence bound for the interval that ends at rung `rung`;
// running trials count as if they end as predicted. nullopt while there are too few changes for a
// model.
std::optional<Point> choose_by_bandit(const Space& space, const RungTable& table,
                                      const History& history, std::int64_t rung, Random& random);

}  // namespace fettle::search
