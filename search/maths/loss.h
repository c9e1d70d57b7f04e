// Losses: values of the first objective turned so that less is better. Pure functions.
#pragma once

#include <limits>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::search {

// Of what is infeasible or not finite.
inline constexpr double kWorstLoss = std::numeric_limits<double>::infinity();

// -1 where the first objective is maximised, else 1.
double loss_sign(const std::vector<api::Objective>& objectives);

// At a rung the objectives alone count: whether a constraint holds is known at the end.
double loss_of(const api::Fact& fact, double sign);

// Whether it is a finite value at a rung, but outside a constraint as of then. Where values are put
// in order, those come after the ones within all constraints; nothing else rests on it.
bool is_outside(const api::Fact& fact);

}  // namespace fettle::search
