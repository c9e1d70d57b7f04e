// minimize: a smooth function within bounds, by limited-memory BFGS (NLopt's LD_LBFGS, by Luksan).
// The only file that includes NLopt. A function of its arguments alone: no clock, no randomness.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace fettle::search::gp {

// The value at x; writes the gradient, which has the size of x.
using Differentiable = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct Minimum {
  Eigen::VectorXd x;
  double value = 0;
};

// The best place that was evaluated, of at most `evaluations`; ends sooner where the value changes
// by less than `tolerance`. A value that is not finite counts as a very bad one.
Minimum minimize(const Differentiable& function, const Eigen::VectorXd& start,
                 const Eigen::VectorXd& low, const Eigen::VectorXd& high, int evaluations,
                 double tolerance);

}  // namespace fettle::search::gp
