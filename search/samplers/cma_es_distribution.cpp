#include "search/samplers/cma_es_distribution.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "search/maths/normal.h"

namespace fettle::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMaxRedraws = 10;  // of a position outside the bounds
constexpr double kTiny = 1e-8;   // keeps divisors and eigenvalues off zero
constexpr double kWidestSigma = 1e32;
// Limits for a restart: deviations in units of a parameter's range; ratio of axis lengths.
constexpr double kNarrowestSpread = 1e-9;
constexpr double kWidestSpread = 1e4;
constexpr double kMostElongated = 1e14;
// The margin cannot distinguish smaller probabilities.
constexpr double kSmallestShare = 1e-10;
constexpr double kWarmStartWidth = 0.1;  // of the normal around each good point

// The parameters of the strategy (tutorial, table 1) for a generation of a given size.
struct Strategy {
  Strategy(double n, std::size_t population) {
    const auto lambda = static_cast<double>(population);
    parents = population / 2;
    double sum = 0;
    double squares = 0;
    double negative_sum = 0;
    double negative_squares = 0;
    for (std::size_t i = 0; i < population; ++i) {
      const double weight = std::log((lambda + 1) / 2) - std::log(static_cast<double>(i) + 1);
      weights.push_back(weight);
      (i < parents ? sum : negative_sum) += weight;
      (i < parents ? squares : negative_squares) += weight * weight;
    }
    selected = sum * sum / squares;
    const double negative_selected = negative_sum * negative_sum / negative_squares;
    rank_one = 2 / ((n + 1.3) * (n + 1.3) + selected);
    rank_mu = std::min(1 - rank_one - kTiny,
                       2 * (selected - 2 + 1 / selected) / ((n + 2) * (n + 2) + selected));
    // The sum of the negative weights: the least of the tutorial's alpha_mu, alpha_mueff and
    // alpha_posdef. The last one keeps the covariance positive definite.
    const double negative_total =
        std::min({1 + rank_one / rank_mu, 1 + 2 * negative_selected / (selected + 2),
                  (1 - rank_one - rank_mu) / (n * rank_mu)});
    double positive = 0;  // before scaling; the positive weights are scaled to sum to 1
    double negative = 0;
    for (const double weight : weights) (weight > 0 ? positive : negative) += std::abs(weight);
    for (double& weight : weights) weight *= weight > 0 ? 1 / positive : negative_total / negative;
    path_decay = (4 + selected / n) / (n + 4 + 2 * selected / n);
  }

  std::vector<double> weights;  // of the covariance, best first; the better half is positive
  std::size_t parents = 0;
  double selected = 0;  // the effective number of parents
  double rank_one = 0;  // learning rates
  double rank_mu = 0;
  double path_decay = 0;
};

// Averages the weights over each run of equal losses. `weights`: best first; clipped at 0 for the
// mean, unclipped for the covariance.
std::vector<double> share_among_ties(std::vector<double> weights,
                                     const std::vector<RankedPosition>& generation) {
  for (std::size_t first = 0; first < weights.size();) {
    std::size_t end = first + 1;
    while (end < weights.size() && generation[end].ties_with_previous) ++end;
    double sum = 0;
    for (std::size_t i = first; i < end; ++i) sum += weights[i];
    if (end - first > 1) {
      std::fill(weights.begin() + static_cast<std::ptrdiff_t>(first),
                weights.begin() + static_cast<std::ptrdiff_t>(end),
                sum / static_cast<double>(end - first));
    }
    first = end;
  }
  return weights;
}

double expected_length(double n) { return std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n)); }

VectorXd standard_normal(Index size, Random& random) {
  VectorXd out(size);
  for (double& coordinate : out) coordinate = random.normal();
  return out;
}

// Draws from a normal within a cell; returns the cell's middle if its mass is too small. The
// outermost cells extend beyond the unit interval.
double draw_within(const Dimension::Interval& cell, double mean, double deviation, double uniform) {
  const double from = cell.low <= 0 ? 0 : normal_cdf((cell.low - mean) / deviation);
  const double to = cell.high >= 1 ? 1 : normal_cdf((cell.high - mean) / deviation);
  if (!(to - from > kSmallestShare)) return cell.centre();
  const double share = from + uniform * (to - from);
  return mean + deviation * normal_quantile(std::clamp(share, kSmallestShare, 1 - kSmallestShare));
}

}  // namespace

std::int64_t CmaEs::usual_population(std::size_t parameters) {
  const double n = std::max(1.0, static_cast<double>(parameters));
  return 4 + static_cast<std::int64_t>(std::floor(3 * std::log(n)));
}

CmaEs::CmaEs(std::vector<const Dimension*> axes, Start start)
    : axes_(std::move(axes)),
      mean_(std::move(start.mean)),
      sigma_(start.sigma),
      covariance_(std::move(start.covariance)) {
  const auto n = static_cast<Index>(axes_.size());
  CHECK(n >= 1 && mean_.size() == n && covariance_.rows() == n && covariance_.cols() == n,
        "mean and covariance have one entry an axis");
  CHECK(sigma_ > 0, "a distribution has a width");
  stretch_ = VectorXd::Ones(n);
  sigma_path_ = VectorXd::Zero(n);
  covariance_path_ = VectorXd::Zero(n);
  decompose();
}

void CmaEs::decompose() {
  const MatrixXd symmetric = 0.5 * (covariance_ + covariance_.transpose());
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(symmetric);
  basis_ = solver.eigenvectors();
  lengths_ = solver.eigenvalues().unaryExpr(
      [](double value) { return std::sqrt(value < 0 ? kTiny : value); });
  covariance_ = basis_ * lengths_.cwiseAbs2().asDiagonal() * basis_.transpose();
}

double CmaEs::deviation(Index axis) const {
  return sigma_ * stretch_[axis] * std::sqrt(covariance_(axis, axis));
}

VectorXd CmaEs::whiten(const VectorXd& step) const {
  const VectorXd rotated = basis_.transpose() * step;
  return basis_ * rotated.cwiseQuotient(lengths_.cwiseMax(std::numeric_limits<double>::min()));
}

VectorXd CmaEs::draw(Random& random, double stretch) const {
  VectorXd position;
  for (int i = 0; i <= kMaxRedraws; ++i) {
    const VectorXd normal = standard_normal(mean_.size(), random);
    const VectorXd step = basis_ * lengths_.cwiseProduct(normal);
    position = mean_ + sigma_ * stretch * stretch_.cwiseProduct(step);
    if (into_bounds(position) == position) break;
  }
  return into_bounds(std::move(position));
}

VectorXd CmaEs::into_bounds(VectorXd position) const {
  for (Index i = 0; i < position.size(); ++i) {
    const bool continuous = axes_[static_cast<std::size_t>(i)]->continuous();
    if (continuous) position[i] = std::clamp(position[i], 0.0, 1.0);
  }
  return position;
}

VectorXd CmaEs::adopt(const VectorXd& known, Random& random) const {
  VectorXd position = known;
  for (Index i = 0; i < known.size(); ++i) {
    const double uniform = random.uniform();
    const Dimension& axis = *axes_[static_cast<std::size_t>(i)];
    // The whole line, for an unknown value: draw_within() takes both ends as open.
    Dimension::Interval cell = {0, 1};
    if (!std::isnan(known[i])) {
      if (axis.continuous()) continue;
      cell = axis.to_unit(axis.from_unit(known[i]));
    }
    position[i] = draw_within(cell, mean_[i], deviation(i), uniform);
  }
  const auto n = static_cast<double>(known.size());
  const VectorXd step = (position - mean_).cwiseQuotient(stretch_) / sigma_;
  const double length = whiten(step).norm();
  // A distant position is pulled in to the longest step that the tutorial allows to inject.
  const double longest = std::sqrt(n) + 2 * n / (n + 2);
  if (length > longest) position = mean_ + (longest / length) * (position - mean_);
  return into_bounds(std::move(position));
}

void CmaEs::update(const std::vector<RankedPosition>& generation) {
  CHECK(generation.size() >= static_cast<std::size_t>(kSmallestPopulation),
        "a generation has at least four positions");
  const auto n = static_cast<double>(mean_.size());
  const auto count = static_cast<Index>(generation.size());
  const Strategy strategy(n, generation.size());
  std::vector<double> parent_weights = strategy.weights;
  for (double& weight : parent_weights) weight = std::max(weight, 0.0);
  parent_weights = share_among_ties(std::move(parent_weights), generation);
  const std::vector<double> weights = share_among_ties(strategy.weights, generation);

  ++generations_;
  MatrixXd steps(mean_.size(), count);
  VectorXd path_step = VectorXd::Zero(mean_.size());
  for (Index i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    steps.col(i) = (generation[at].position - mean_).cwiseQuotient(stretch_) / sigma_;
    path_step += parent_weights[at] * steps.col(i);
  }
  // Steps of unlikely length must not shrink the covariance below zero (tutorial, eq. 46).
  VectorXd scaled(count);
  for (Index i = 0; i < count; ++i) {
    const double weight = weights[static_cast<std::size_t>(i)];
    scaled[i] = weight >= 0 ? weight : weight * n / (whiten(steps.col(i)).squaredNorm() + kTiny);
  }
  mean_ += sigma_ * path_step;  // eq. 42
  adapt_step_size(path_step, strategy.selected);

  // `decay` is the decay of sigma_path_ (adapt_step_size). `correction`: the share of its full
  // length that this path, which began at 0, has reached.
  const double decay = (strategy.selected + 2) / (n + strategy.selected + 5);
  const double correction =
      std::sqrt(1 - std::pow(1 - decay, 2 * (static_cast<double>(generations_) + 1)));
  // The tutorial's h_sigma. While the step-size path is long, sigma is still growing; the
  // covariance path then takes no step, or the longest axis would grow too fast.
  const bool steady = sigma_path_.norm() / correction < (1.4 + 2 / (n + 1)) * expected_length(n);
  const double path = strategy.path_decay;
  covariance_path_ *= 1 - path;
  if (steady) covariance_path_ += std::sqrt(path * (2 - path) * strategy.selected) * path_step;
  // A path without its step has too little variance, so C keeps this much more of its old value.
  const double lost = steady ? 0 : path * (2 - path);
  double sum = 0;
  for (const double weight : weights) sum += weight;
  // Eq. 47: old value, rank-one update along the path, rank-mu update along the ranked steps.
  covariance_ *= 1 + strategy.rank_one * lost - strategy.rank_one - strategy.rank_mu * sum;
  covariance_ += strategy.rank_one * covariance_path_ * covariance_path_.transpose();
  covariance_ += strategy.rank_mu * steps * scaled.asDiagonal() * steps.transpose();
  decompose();
  // A discrete axis may have become so narrow that only one cell is ever drawn.
  for (Index i = 0; i < mean_.size(); ++i) {
    if (axes_[static_cast<std::size_t>(i)]->continuous()) continue;
    correct_margin(i, 1 / (n * static_cast<double>(count)));
  }
}

// Increases the step size if recent steps point the same way, and decreases it if they cancel:
// compares the path with its expected length under random steps (eqs. 43 and 44).
void CmaEs::adapt_step_size(const VectorXd& path_step, double selected) {
  const auto n = static_cast<double>(mean_.size());
  const double decay = (selected + 2) / (n + selected + 5);
  const double damping = 1 + 2 * std::max(0.0, std::sqrt((selected - 1) / (n + 1)) - 1) + decay;
  sigma_path_ =
      (1 - decay) * sigma_path_ + std::sqrt(decay * (2 - decay) * selected) * whiten(path_step);
  sigma_ *= std::exp(decay / damping * (sigma_path_.norm() / expected_length(n) - 1));
  sigma_ = std::min(sigma_, kWidestSigma);
}

// Moves the mean and stretches the axis until the probability on each side of the mean's cell is at
// least half the margin. In an outermost cell, moves only the mean until the inner side has the
// whole margin.
void CmaEs::correct_margin(Index axis, double margin) {
  const Dimension& dimension = *axes_[static_cast<std::size_t>(axis)];
  const double last = static_cast<double>(dimension.cells()) - 1;
  const double cell = dimension.from_unit(mean_[axis]);
  // The ends of the mean's cell; in an outermost cell both are its inner end.
  const double low = dimension.to_unit(std::max(cell, 1.0)).low;
  const double high = dimension.to_unit(std::min(cell, last - 1)).high;
  const double width = deviation(axis);
  if (!(width > 0) || !std::isfinite(mean_[axis] / width)) return;  // see converged()
  double below = normal_cdf((low - mean_[axis]) / width);
  double above = normal_cdf((mean_[axis] - high) / width);
  const double within = 1 - (below + above);
  // The mean lies in an outermost cell: moving the mean gives the only neighbour the margin.
  if (std::max(below, above) > 0.5) {
    if (std::min(below, above) >= margin) return;
    const double side = mean_[axis] < high ? -1 : 1;
    mean_[axis] = high - side * width * normal_quantile(margin);
    return;
  }
  // Otherwise both sides are raised to half the margin, and the added total is taken back from any
  // excess over it.
  below = std::max(below, margin / 2);
  above = std::max(above, margin / 2);
  const double total = below + within + above;
  // 1.5 margin: half a margin for each of below, within and above, which they keep.
  const double excess = (1 - total) / (total - 1.5 * margin);
  below = std::clamp(below + excess * (below - margin / 2), kSmallestShare, 0.5 - kSmallestShare);
  above = std::clamp(above + excess * (above - margin / 2), kSmallestShare, 0.5 - kSmallestShare);
  // The stretch and the mean that give exactly these probabilities below and above.
  const double down = -normal_quantile(below);
  const double up = -normal_quantile(above);
  stretch_[axis] = (high - low) / ((down + up) * sigma_ * std::sqrt(covariance_(axis, axis)));
  mean_[axis] = (low * up + high * down) / (down + up);
}

bool CmaEs::converged() const {
  const double widest = sigma_ * lengths_.maxCoeff();
  if (!std::isfinite(widest) || widest > kWidestSpread || widest < kNarrowestSpread) return true;
  if (!mean_.allFinite() || !stretch_.allFinite()) return true;
  return lengths_.maxCoeff() > kMostElongated * lengths_.minCoeff();
}

CmaEs::Start warm_start(const std::vector<VectorXd>& best) {
  CHECK(!best.empty(), "there is something to start from");
  const Index n = best.front().size();
  const auto count = static_cast<double>(best.size());
  CmaEs::Start out;
  out.mean = VectorXd::Zero(n);
  for (const VectorXd& position : best) out.mean += position / count;
  MatrixXd covariance = MatrixXd::Identity(n, n) * (kWarmStartWidth * kWarmStartWidth);
  for (const VectorXd& position : best) {
    const VectorXd step = position - out.mean;
    covariance += step * step.transpose() / count;
  }
  // Sigma is the geometric mean of the axis lengths, so the covariance has determinant 1.
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance, Eigen::EigenvaluesOnly);
  const double log_volume = solver.eigenvalues().array().log().mean();
  out.sigma = std::exp(0.5 * log_volume);
  out.covariance = covariance / std::exp(log_volume);
  return out;
}

}  // namespace fettle::search
