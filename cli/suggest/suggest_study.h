// The study line of the suggest protocol (suggest.h) as a search problem.
// Pure; may be called from any thread.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "search/search.h"

namespace fettle::cli {

// Members of the study itself that are not known are passed over: clients may send more. Members of
// a parameter, of the algorithm and of early stopping must be known, and within the bounds of a
// Study: a misspelt one would be another search. What the space itself must keep to is checked by
// search::make_sampler.
Result<search::Problem> read_suggest_study(const Json& study);

}  // namespace fettle::cli
