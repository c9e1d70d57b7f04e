// Losses: values of the first objective with the sign turned so that less is better. Pure
// functions.
#pragma once

#include <limits>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::search {

// The loss of an infeasible or non-finite value.
inline constexpr double kWorstLoss = std::numeric_limits<double>::infinity();

// -1 if the first objective is maximised, else 1.
double loss_sign(const std::vector<api::Objective>& objectives);

// At a rung only the objectives count: constraints are checked at the end.
double loss_of(const api::Fact& fact, double sign);

// Whether the fact is a finite value at a rung that violates a constraint so far. In a ranking such
// values come after the values within all constraints; nothing else depends on it.
bool is_outside(const api::Fact& fact);

}  // namespace fettle::search
