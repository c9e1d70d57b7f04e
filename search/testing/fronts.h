// Problems of several objectives whose fronts are known, and how much of one a search covers.
// Helpers of tests.
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

// Of objectives f0, f1 ... to be minimised.
Problem problem_with(std::vector<api::Parameter> parameters, const std::string& algorithm,
                     std::size_t objectives, std::int64_t seed = 1);

// Parameters x0, x1 ... of the unit cube in which the functions below live, six of them.
std::vector<api::Parameter> unit_cube();
double x_of(const Json& point, int i);

// A function with the most that can be covered of what is better than `reference`.
struct FrontProblem {
  Objectives objectives;
  Losses reference;
  double best = 0;
};
FrontProblem zdt1();   // Zitzler, Deb & Thiele 2000: a convex front
FrontProblem zdt2();   // a concave one
FrontProblem dtlz2();  // Deb et al. 2005: an eighth of a sphere, of three objectives

// `trials` trials, `parallel` of which are pending at any time; a trial without some value is
// infeasible.
History run(const Problem& problem, const Objectives& objectives, int trials, int parallel);

// Shares of the best that there is, the median of five searches.
double median_share(const std::string& algorithm, const FrontProblem& problem, int trials,
                    int parallel);

}  // namespace fettle::search::testing
