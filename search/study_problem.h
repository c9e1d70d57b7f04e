// The search problem that a Study poses, with what `auto` decides about steps (auto.h) settled:
// what is read of its algorithm and its early stopping from here on is what is in force. Pure
// functions; usable from any thread.
//
// A budget may change while a Study runs, and `auto` decides by it. So what it stands for is
// written down before the first trial (api::SearchPeriod) and holds from then on. It is asked again
// only when budget.trials changes, and the answer counts for the trials that come
// (docs/decisions/0038).
#pragma once

#include <cstdint>
#include <vector>

#include "api/place.h"
#include "api/study.h"
#include "search/search.h"

namespace fettle::search {

// As a Study begins that has nothing settled. Without what earlier Studies found, which the spec
// does not know.
Problem problem_of(const api::StudySpec& spec, api::Place place = api::Place::kLocal);

// What is in force in `period` of the Study. A period whose algorithm this version does not know
// settles nothing.
Problem problem_of(const api::StudySpec& spec, const api::SearchPeriod& period);

// What is in force now, or in that of the Study's periods in which a trial was created, or another
// decision taken: `next` is the index that the next trial got, `basis` the highest seq known.
Problem problem_of(const api::Study& study);
Problem problem_at(const api::Study& study, std::int64_t next, std::int64_t basis);
// The period itself; nullptr where nothing is settled.
const api::SearchPeriod* period_at(const std::vector<api::SearchPeriod>& periods, std::int64_t next,
                                   std::int64_t basis);

// What is to be settled now: `since`, `basis` and `computed_by` are left to the caller. What was
// settled about steps at the beginning stays as it is, and a search that learns from results is not
// given up for one that does not.
api::SearchPeriod settle(const api::Study& study, api::Place place = api::Place::kLocal);

// Whether the next run of a trial finds the checkpoints of the run before, as was settled when the
// Study began. If not, each run starts from the first step.
bool keeps_checkpoints(const api::StudyStatus& status);

// Whether its algorithm and its revision are known here.
bool is_known(const api::SearchPeriod& period);

// The steps at which a Rung fact is wanted of the Study's trials (search.h).
std::vector<std::int64_t> rung_steps(const api::Study& study);

}  // namespace fettle::search
