// The study line of the suggest protocol (suggest.h) as a search problem.
// Pure; may be called from any thread.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "search/search.h"

namespace fettle::cli {

// Ignores unknown members of the study itself: clients may send more. Members of a parameter, of
// the algorithm and of early stopping must be known, and within the bounds of a Study: a misspelt
// one would make another search. search::make_sampler checks the rules of the space itself.
Result<search::Problem> read_suggest_study(const Json& study);

}  // namespace fettle::cli
