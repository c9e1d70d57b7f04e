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

double loss_of(const api::Fact& fact, double sign);

}  // namespace fettle::search
