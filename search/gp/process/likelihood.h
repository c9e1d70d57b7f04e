// Likelihood: the log likelihood of hyperparameters given targets, its analytic gradient, and the
// fit.
//
// The model is y ~ N(0, scale (K + noise I)): K from kernel.h, `scale` an output variance. Priors:
// length scales LogNormal(sqrt 2 + log(d)/2, sqrt 3) (Hvarfner et al. 2024: complexity does not
// grow with the dimensions), noise LogNormal(-4, 1) (as in BoTorch), the constants of conditional
// parameters logit-normal, the exponents that warp numbers log-normal around 1, the output variance
// scaled inverse chi-squared around 1. The best output variance for given other hyperparameters has
// a closed form. Not synchronised.
#pragma once

#include <Eigen/Core>

#include "search/gp/process/kernel.h"

namespace fettle::search::gp {

// The least noise variance, as a share of the output scale.
inline constexpr double kNoiseFloor = 1e-6;

class Likelihood {
 public:
  // Keeps references: `inputs` (only its first targets.size() rows count) and `targets` must
  // outlive it. Targets are centred and have about unit variance.
  Likelihood(const Axes& axes, const Inputs& inputs, const Eigen::VectorXd& targets);

  struct Value {
    double log = 0;            // minus infinity if the covariance is not positive definite
    Eigen::VectorXd gradient;  // by packed hyperparameter
    double scale = 1;          // output variance
  };
  // The log marginal likelihood for a given output variance.
  Value marginal(const Hyperparameters& hyperparameters, double scale) const;
  // The same plus the logarithms of the priors, at the output variance that maximises it.
  Value posterior(const Hyperparameters& hyperparameters) const;

  // The mode of the priors, with all log length scales shifted by `log_factor`: a start of a fit.
  // Numbers are warped only if `warps`.
  Hyperparameters prior_mode(double log_factor, bool warps) const;

  // The hyperparameters with the largest posterior() that L-BFGS reaches from any of the starts,
  // which all have the same shape.
  Hyperparameters fit(const std::vector<Hyperparameters>& starts, int evaluations) const;

 private:
  struct Covariance;
  bool factorise(const Hyperparameters& hyperparameters, Covariance& out) const;
  void differentiate(const Covariance& covariance, Value& out) const;
  void add_priors(const Hyperparameters& hyperparameters, Value& out) const;

  const Axes& axes_;
  const Inputs& inputs_;
  const Eigen::VectorXd& targets_;
  double length_centre_ = 0;  // of the prior over log lengths
};

}  // namespace fettle::search::gp
