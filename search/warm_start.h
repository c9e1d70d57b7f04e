// A search that does not begin from nothing: points to try first, and what earlier Studies found
// (docs/decisions/0008-warm-start.md).
//
// A sampler round another one. It suggests the points to try first, then the best few of the prior
// observations, then what the inner sampler makes of a history with the priors in front. These are
// no trials of this Study: they have no numbers, and their points may be tried again.
// Priors can mislead (other data, a moved optimum), so they have to earn their place, and in the
// end give it up (transfer.h).
// Not synchronised.
#pragma once

#include <memory>

#include "base/result.h"
#include "search/search.h"

namespace fettle::search {

// Whether the problem says what to begin with.
bool starts_warm(const Problem& problem);

// Errors: those of Space::make; a first point outside the space.
Result<std::unique_ptr<Sampler>> make_warm_start(const Problem& problem,
                                                 std::unique_ptr<Sampler> sampler);

}  // namespace fettle::search
