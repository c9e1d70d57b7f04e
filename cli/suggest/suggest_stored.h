// A study of `fettle suggest --study` as it is stored: a Study without a program, whose trials the
// client evaluates (cli/common/asked.h). Pure functions; may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/result.h"
#include "cli/suggest/suggest_study.h"
#include "cli/suggest/suggest_trials.h"
#include "search/search.h"

namespace fettle::cli {

// The Study to store under `name`, with its search period and its results from elsewhere. Errors: a
// bound of stored Studies (docs/study.md), since a session alone has wider bounds.
Result<api::Study> study_to_store(const SuggestStudy& asked, const search::Problem& settled,
                                  const std::string& name);

// The problem of a stored Study now. Its limit on costs holds for every algorithm.
search::Problem problem_of_stored(const api::Study& study);

// Error: names each field of the study line by which `wanted` differs from the Study that is
// stored, or says that `stored` has a program. The limits max_trials, parallel and max_cost may
// differ, except in a population.
Status check_same_study(const api::Study& stored, const api::Study& wanted);

// A point in the history of a search: the index that the next trial gets, and the highest seq.
struct SearchPosition {
  std::int64_t next = 0;
  std::int64_t basis = 0;
};

// Returns the period to begin at `position` if the limits of the line have changed, or another
// machine or version computes; nullopt: the last period stays. Error: the limits have changed too
// often (api::kMostSearchPeriods).
Result<std::optional<api::SearchPeriod>> next_period(const api::Study& stored,
                                                     const api::Study& wanted,
                                                     const SearchPosition& position);

// The trials of a stored Study as a session has them, by index. `promotes`: trials pause at rungs.
SuggestTrials restore_trials(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                             bool promotes);

}  // namespace fettle::cli
