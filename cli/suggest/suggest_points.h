// Points and results that a client of the suggest protocol brings along: `first` and `known`.
// Pure; may be called from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/suggest/suggest_request.h"

namespace fettle::cli {

// Whether each point lies in the space. A point may leave parameters out. The error names the first
// point that does not, and why.
Status check_first_points(const std::vector<api::Parameter>& space,
                          const std::vector<Json>& points);

// The point with all its active parameters; missing values are drawn, keyed by `trial`.
Result<Json> fill_point(const api::StudySpec& spec, const Json& point, std::int64_t trial);

// The results at the last step as priors. Errors: a point outside the space or without one of its
// parameters, a value that is not finite.
Result<std::vector<api::PriorObservation>> priors_of(const api::StudySpec& spec,
                                                     const KnownResults& results);

}  // namespace fettle::cli
