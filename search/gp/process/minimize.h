// minimize: minimises a smooth function within bounds, by limited-memory BFGS (NLopt's LD_LBFGS, by
// Luksan). The only file that includes NLopt. A function of its arguments alone: no clock, no
// randomness.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace fettle::search::gp {

// Returns the value at x; writes the gradient, which has the size of x.
using Differentiable = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct Minimum {
  Eigen::VectorXd x;
  double value = 0;
};

// Returns the best point seen in at most `evaluations`; ends earlier if the value changes by less
// than `tolerance`. A non-finite value counts as very bad.
Minimum minimize(const Differentiable& function, const Eigen::VectorXd& start,
                 const Eigen::VectorXd& low, const Eigen::VectorXd& high, int evaluations,
                 double tolerance);

}  // namespace fettle::search::gp
