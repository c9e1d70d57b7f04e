// Problems of several objectives whose fronts are known, and the share of a front that a search
// covers. Helpers of tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "search/maths/pareto.h"
#include "search/search.h"

namespace fettle::search::testing {

using Objectives = std::function<std::vector<std::optional<double>>(const Json&)>;

// A problem with objectives f0, f1 ... to be minimised.
Problem problem_with(std::vector<api::Parameter> parameters, const std::string& algorithm,
                     std::size_t objectives, std::int64_t seed = 1);

// Parameters x0 ... x5 of the unit cube, the domain of the functions below.
std::vector<api::Parameter> unit_cube();
double x_of(const Json& point, int i);

// A function, and the largest hypervolume that dominates `reference`.
struct FrontProblem {
  Objectives objectives;
  Losses reference;
  double best = 0;
};
FrontProblem zdt1();   // Zitzler, Deb & Thiele 2000: a convex front
FrontProblem zdt2();   // a concave one
FrontProblem dtlz2();  // Deb et al. 2005: an eighth of a sphere, of three objectives

// Runs `trials` trials with `parallel` of them pending at any time; a trial with a missing value is
// infeasible.
History run(const Problem& problem, const Objectives& objectives, int trials, int parallel);

// Returns the covered share of the largest hypervolume: the median of five searches.
double median_share(const std::string& algorithm, const FrontProblem& problem, int trials,
                    int parallel);

}  // namespace fettle::search::testing
