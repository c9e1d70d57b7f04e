// WarmStart: starts a search from points to try first and from the results of earlier Studies
// (docs/decisions/0008-warm-start.md).
//
// A sampler around another one. It suggests the points to try first, then the best few prior
// observations, then what the inner sampler suggests for a history with the priors in front. Priors
// are not trials of this Study: they have no numbers, and their points may be tried again. Priors
// can mislead (other data, a moved optimum), so they count only as far as they agree with this
// Study's results, and finally not at all (transfer.h). Not synchronised.
#pragma once

#include <memory>

#include "base/result.h"
#include "search/search.h"

namespace fettle::search {

// Whether the problem has points to try first or prior observations.
bool starts_warm(const Problem& problem);

// Errors: Space::make's; a point to try first outside the space.
Result<std::unique_ptr<Sampler>> make_warm_start(const Problem& problem,
                                                 std::unique_ptr<Sampler> sampler);

}  // namespace fettle::search
