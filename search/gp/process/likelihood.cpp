#include "search/gp/process/likelihood.h"

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "search/gp/process/minimize.h"

namespace fettle::search::gp {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kLengthVariance = 3;  // of the logarithm, as for noise and ties
constexpr double kNoiseCentre = -4;
constexpr double kNoiseVariance = 1;
constexpr double kTieCentre = 1;
constexpr double kTieVariance = 2;
constexpr double kWarpVariance = 0.25;
constexpr double kScaleObservations = 4;  // weight of the prior of the output variance

// Bounds of the search.
constexpr double kShortestLogLength = -5;
constexpr double kLongestLogLength = 8;
constexpr double kLargestTie = 5;
constexpr double kLargestWarp = 1.5;
constexpr double kTolerance = 1e-3;  // in log posterior: far below what data can distinguish

}  // namespace

struct Likelihood::Covariance {
  explicit Covariance(Kernel of) : kernel(std::move(of)) {}
  Kernel kernel;
  Inputs warped;
  MatrixXd values;  // lower triangles
  MatrixXd slopes;
  Eigen::LLT<MatrixXd> cholesky;
  VectorXd alpha;      // (K + noise I)^-1 y
  double fit = 0;      // y' alpha
  double log_det = 0;  // of K + noise I
};

Likelihood::Likelihood(const Axes& axes, const Inputs& inputs, const VectorXd& targets)
    : axes_(axes),
      inputs_(inputs),
      targets_(targets),
      length_centre_(std::numbers::sqrt2 + 0.5 * std::log(static_cast<double>(axes.list.size()))) {}

bool Likelihood::factorise(const Hyperparameters& hyperparameters, Covariance& out) const {
  const Index n = targets_.size();
  out.warped = inputs_;
  out.kernel.warp(out.warped, 0, n);
  out.values.setZero(n, n);
  out.slopes.setZero(n, n);
  Kernel::Row row;
  for (Index j = 0; j < n; ++j) {
    // Row j against rows j to n - 1: column j of the lower triangle, all that LLT reads.
    out.kernel.row(out.warped, j, n - j, out.warped, j, row);
    out.values.col(j).tail(n - j) = row.value;
    out.slopes.col(j).tail(n - j) = row.slope;
  }
  MatrixXd covariance = out.values.array() + kMeanVariance;
  covariance.diagonal().array() += std::exp(hyperparameters.log_noise);
  out.cholesky.compute(covariance);
  if (out.cholesky.info() != Eigen::Success) return false;
  out.alpha = out.cholesky.solve(targets_);
  out.fit = targets_.dot(out.alpha);
  out.log_det = 2 * out.cholesky.matrixLLT().diagonal().array().log().sum();
  return true;
}

// d log p / d theta = sum_jl W_jl d(K + noise I)_jl, W = (alpha alpha' / scale - R^-1) / 2.
void Likelihood::differentiate(const Covariance& covariance, Value& out) const {
  const Index n = targets_.size();
  MatrixXd weights = covariance.cholesky.solve(MatrixXd::Identity(n, n));
  weights *= -0.5;
  weights.noalias() += (0.5 / out.scale) * covariance.alpha * covariance.alpha.transpose();
  out.gradient = covariance.kernel.contract(inputs_, covariance.warped, covariance.values,
                                            covariance.slopes, weights);
  // By log_noise, which comes after the lengths in pack(); contract() leaves it 0.
  out.gradient[static_cast<Index>(axes_.list.size())] = covariance.kernel.noise() * weights.trace();
}

Likelihood::Value Likelihood::marginal(const Hyperparameters& hyperparameters, double scale) const {
  Covariance covariance{Kernel(axes_, hyperparameters)};
  Value out;
  out.scale = scale;
  if (!factorise(hyperparameters, covariance)) {
    out.log = -std::numeric_limits<double>::infinity();
    out.gradient = VectorXd::Zero(hyperparameters.pack().size());
    return out;
  }
  const auto n = static_cast<double>(targets_.size());
  out.log = -0.5 * (covariance.fit / scale + covariance.log_det +
                    n * std::log(2 * std::numbers::pi * scale));
  differentiate(covariance, out);
  return out;
}

void Likelihood::add_priors(const Hyperparameters& hyperparameters, Value& out) const {
  const Index lengths = hyperparameters.log_lengths.size();
  const auto from_centre = (hyperparameters.log_lengths.array() - length_centre_).eval();
  // Densities of the length and of the noise, not of their logarithms: hence the linear terms. The
  // densities of ties and warps are over logits and logarithms. The gradient is in the order of
  // pack().
  out.log -= 0.5 * from_centre.square().sum() / kLengthVariance + hyperparameters.log_lengths.sum();
  out.gradient.head(lengths).array() -= from_centre / kLengthVariance + 1;
  const double noise = hyperparameters.log_noise - kNoiseCentre;
  out.log -= 0.5 * noise * noise / kNoiseVariance + hyperparameters.log_noise;
  out.gradient[lengths] -= noise / kNoiseVariance + 1;
  const auto ties = (hyperparameters.ties.array() - kTieCentre).eval();
  out.log -= 0.5 * ties.square().sum() / kTieVariance;
  out.gradient.segment(lengths + 1, ties.size()).array() -= ties / kTieVariance;
  out.log -= 0.5 * hyperparameters.warps.squaredNorm() / kWarpVariance;
  out.gradient.tail(hyperparameters.warps.size()) -= hyperparameters.warps / kWarpVariance;
}

Likelihood::Value Likelihood::posterior(const Hyperparameters& hyperparameters) const {
  Covariance covariance{Kernel(axes_, hyperparameters)};
  Value out;
  out.gradient = VectorXd::Zero(hyperparameters.pack().size());
  out.log = -std::numeric_limits<double>::infinity();
  if (!factorise(hyperparameters, covariance)) return out;
  // The prior of the scale counts as kScaleObservations targets of mean square 1. out.log omits
  // terms that do not depend on hyperparameters.
  const double n = static_cast<double>(targets_.size()) + kScaleObservations;
  const double fit = covariance.fit + kScaleObservations;
  out.scale = fit / n;
  // At the best scale the derivative with respect to it is 0, so the gradient may hold it fixed.
  out.log = -0.5 * (fit / out.scale + covariance.log_det + n * std::log(out.scale));
  differentiate(covariance, out);
  add_priors(hyperparameters, out);
  return out;
}

Hyperparameters Likelihood::prior_mode(double log_factor, bool warps) const {
  const auto lengths = static_cast<Index>(axes_.list.size());
  Hyperparameters out;
  // The mode of a log-normal lies a variance below its centre, of the other priors at it.
  out.log_lengths = VectorXd::Constant(lengths, length_centre_ - kLengthVariance + log_factor);
  out.log_noise = kNoiseCentre - kNoiseVariance;
  out.ties = VectorXd::Constant(axes_.branches, kTieCentre);
  if (warps) out.warps = VectorXd::Zero(2 * static_cast<Index>(axes_.numbers.size()));
  return out;
}

Hyperparameters Likelihood::fit(const std::vector<Hyperparameters>& starts, int evaluations) const {
  const auto lengths = static_cast<Index>(axes_.list.size());
  const Index warps = starts.front().warps.size();
  VectorXd low(lengths + 1 + axes_.branches + warps);
  VectorXd high(low.size());
  // In the order of pack(). The noise is at least kNoiseFloor and at most the output scale.
  low << VectorXd::Constant(lengths, kShortestLogLength), std::log(kNoiseFloor),
      VectorXd::Constant(axes_.branches, -kLargestTie), VectorXd::Constant(warps, -kLargestWarp);
  high << VectorXd::Constant(lengths, kLongestLogLength), 0,
      VectorXd::Constant(axes_.branches, kLargestTie), VectorXd::Constant(warps, kLargestWarp);
  const auto loss = [&](const VectorXd& packed, VectorXd& gradient) {
    const Value value = posterior(Hyperparameters::unpack(axes_, packed));
    gradient = -value.gradient;
    return -value.log;
  };
  Minimum best;
  best.value = std::numeric_limits<double>::infinity();
  for (const Hyperparameters& start : starts) {
    Minimum found = minimize(loss, start.pack(), low, high, evaluations, kTolerance);
    // The first start counts even if no value was finite, so that a result exists.
    if (found.value < best.value || best.x.size() == 0) best = std::move(found);
  }
  return Hyperparameters::unpack(axes_, best.x);
}

}  // namespace fettle::search::gp
