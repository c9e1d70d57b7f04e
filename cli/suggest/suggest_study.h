// The study line of the suggest protocol (suggest.h) as a search problem.
// Pure; may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"
#include "search/search.h"

namespace fettle::cli {

// A study line. Objectives without names are called `value`, or `value0`, `value1` ... if there are
// several.
struct SuggestStudy {
  api::StudySpec spec;  // objectives, space, constraints, algorithm, rules, points to try first
  std::int64_t max_trials = 0;  // 0 = no limit known
  std::int64_t parallel = 0;    // 0 = not known
  std::optional<double> max_cost;
  std::vector<api::PriorObservation> priors;  // `known`
};

// Ignores unknown members of the study itself: clients may send more. Members of a parameter, of
// the algorithm and of early stopping must be known, and within the bounds of a Study: a misspelt
// one would make another search. search::make_sampler checks the rules of the space itself.
Result<SuggestStudy> read_suggest_spec(const Json& study);
Result<search::Problem> problem_of(const SuggestStudy& study);
// Both in one.
Result<search::Problem> read_suggest_study(const Json& study);

// Reads the list of a `known` request: results as priors of the search. Results at a step before
// resource.max are left out, as they cannot be compared with results of whole trials.
Result<std::vector<api::PriorObservation>> read_known(const api::StudySpec& spec, const Json& list);

}  // namespace fettle::cli
