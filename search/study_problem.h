// StudyProblem: the search problem of a Study, with the decisions of `auto` about steps (auto.h)
// settled. The result holds the algorithm and early stopping in force. Pure functions; usable from
// any thread.
//
// The budget, which `auto` depends on, may change while a Study runs. So the resolved algorithm is
// stored before the first trial (api::SearchPeriod) and stays in force. It is chosen again only
// when budget.trials changes, and the new choice applies to later trials (docs/decisions/0038).
#pragma once

#include <cstdint>
#include <vector>

#include "api/study/place.h"
#include "api/study/study.h"
#include "search/search.h"

namespace fettle::search {

// Returns the problem of a new Study that has nothing settled. Excludes results of earlier Studies,
// which the spec does not contain.
Problem problem_of(const api::StudySpec& spec, api::Place place = api::Place::kLocal);

// Returns the problem in force in `period` of the Study. A period whose algorithm this version does
// not know settles nothing.
Problem problem_of(const api::StudySpec& spec, const api::SearchPeriod& period);

// Return the problem in force now (problem_of), or in force when a trial was created or another
// decision was taken (problem_at). `next` is the index that the next trial got, `basis` the highest
// seq known.
Problem problem_of(const api::Study& study);
Problem problem_at(const api::Study& study, std::int64_t next, std::int64_t basis);
// Returns the period itself; nullptr if nothing is settled.
const api::SearchPeriod* period_at(const std::vector<api::SearchPeriod>& periods, std::int64_t next,
                                   std::int64_t basis);

// Returns the period to store now, except `since`, `basis` and `computed_by`, which the caller
// sets. Keeps what was settled about steps at the beginning, and never replaces a search that
// learns from results by one that does not.
api::SearchPeriod settle(const api::Study& study, api::Place place = api::Place::kLocal);

// Whether the next run of a trial finds the checkpoints of the previous run, as settled when the
// Study began. If not, each run starts from the first step.
bool keeps_checkpoints(const api::StudyStatus& status);

// Whether this version knows the period's algorithm, early stopping and revision.
bool is_known(const api::SearchPeriod& period);

// Returns the steps at which the Study's trials need a Rung fact (search.h).
std::vector<std::int64_t> rung_steps(const api::Study& study);

}  // namespace fettle::search
