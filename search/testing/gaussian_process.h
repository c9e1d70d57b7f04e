// Helpers of this folder's tests.
#pragma once

#include <vector>

#include "base/philox.h"
#include "search/gp/process/kernel.h"
#include "search/space/space.h"

namespace fettle::search::gp::testing {

// Numbers, integers, choices, and conditional parameters of each kind.
Space mixed_space();

// `count` points from the prior.
Inputs draw_inputs(const Space& space, Random& random, Index count);

Hyperparameters draw_hyperparameters(const Axes& axes, Random& random);

// Returns the gradient of `function` at x by central differences.
template <class Function>
Eigen::VectorXd differences(const Function& function, const Eigen::VectorXd& x) {
  constexpr double kStep = 1e-5;
  Eigen::VectorXd out(x.size());
  for (Index i = 0; i < x.size(); ++i) {
    Eigen::VectorXd there = x;
    there[i] = x[i] + kStep;
    const double above = function(there);
    there[i] = x[i] - kStep;
    out[i] = (above - function(there)) / (2 * kStep);
  }
  return out;
}

}  // namespace fettle::search::gp::testing
