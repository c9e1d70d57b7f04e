#include "search/gp/process/minimize.h"

#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/check.h"

namespace fettle::search::gp {
namespace {

constexpr double kVeryBad = 1e10;

struct Search {
  const Differentiable& function;
  Eigen::VectorXd x;
  Eigen::VectorXd gradient;
  Minimum best;
};

double evaluate(unsigned n, const double* x, double* gradient, void* data) {
  Search& search = *static_cast<Search*>(data);
  std::copy(x, x + n, search.x.data());
  const double value = search.function(search.x, search.gradient);
  const bool finite = std::isfinite(value) && search.gradient.allFinite();
  // NLopt passes nullptr where it needs the value alone.
  if (gradient != nullptr) {
    if (!finite) search.gradient.setZero();
    std::copy(search.gradient.data(), search.gradient.data() + n, gradient);
  }
  if (!finite) return kVeryBad;
  if (value < search.best.value) search.best = {search.x, value};
  return value;
}

}  // namespace

Minimum minimize(const Differentiable& function, const Eigen::VectorXd& start,
                 const Eigen::VectorXd& low, const Eigen::VectorXd& high, int evaluations,
                 double tolerance) {
  const auto n = static_cast<unsigned>(start.size());
  Eigen::VectorXd x = start.cwiseMax(low).cwiseMin(high);
  // If no value is finite, the answer is the start with an infinite value.
  Search search{function,
                x,
                Eigen::VectorXd::Zero(start.size()),
                {x, std::numeric_limits<double>::infinity()}};
  const std::unique_ptr<nlopt_opt_s, void (*)(nlopt_opt)> opt(nlopt_create(NLOPT_LD_LBFGS, n),
                                                              &nlopt_destroy);
  CHECK(opt != nullptr, "out of memory");
  nlopt_set_lower_bounds(opt.get(), low.data());
  nlopt_set_upper_bounds(opt.get(), high.data());
  nlopt_set_min_objective(opt.get(), &evaluate, &search);
  nlopt_set_maxeval(opt.get(), evaluations);
  nlopt_set_ftol_abs(opt.get(), tolerance);
  double value = 0;
  // The way it ended does not matter (a line search without progress is called a failure): the
  // answer is the best point seen.
  nlopt_optimize(opt.get(), x.data(), &value);
  return std::move(search.best);
}

}  // namespace fettle::search::gp
