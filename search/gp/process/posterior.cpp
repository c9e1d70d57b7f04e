#include "search/gp/process/posterior.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace fettle::search::gp {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kScaleObservations = 4;  // weight of the prior of the output variance
constexpr double kLeastVariance = 1e-14;  // floor after rounding
constexpr Index kRowAlignment = 8;        // aligned columns: bits do not depend on capacity

Index aligned(Index rows) { return (rows + kRowAlignment - 1) / kRowAlignment * kRowAlignment; }

}  // namespace

Posterior::Posterior(const Axes& axes, const Hyperparameters& hyperparameters, const Inputs& inputs,
                     Index capacity)
    : kernel_(axes, hyperparameters),
      inputs_(aligned(capacity), inputs.at.cols()),  // rows rounded up (kRowAlignment)
      factor_(aligned(capacity), aligned(capacity)),
      rows_(inputs.at.rows()) {
  CHECK(rows_ <= capacity, "a posterior has room for its first rows");
  inputs_.at.topRows(rows_) = inputs.at;
  inputs_.active.topRows(rows_) = inputs.active;
  kernel_.warp(inputs_, 0, rows_);
  MatrixXd covariance = MatrixXd::Zero(rows_, rows_);
  Kernel::Row row;
  for (Index j = 0; j < rows_; ++j) {
    kernel_.row(inputs_, j, rows_ - j, inputs_, j, row);
    covariance.col(j).tail(rows_ - j) = row.value + kMeanVariance;
  }
  covariance.diagonal().array() += kernel_.noise();
  const Eigen::LLT<MatrixXd> cholesky(covariance);
  // The noise floor keeps the matrix positive definite: its condition number is at most rows /
  // 1e-6.
  CHECK(cholesky.info() == Eigen::Success, "a covariance matrix is positive definite");
  factor_.topLeftCorner(rows_, rows_) = cholesky.matrixLLT();
}

void Posterior::solve(VectorXd& values) const {
  const Index n = values.size();
  factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>().solveInPlace(values);
}

double Posterior::correlation(Inputs points) const {
  kernel_.warp(points, 0, 2);
  Kernel::Row row;
  kernel_.row(points, 0, 1, points, 1, row);
  return row.value[0];
}

void Posterior::append(const Inputs& from, Index row) {
  CHECK(rows_ < factor_.rows(), "a posterior has room for its rows");
  inputs_.copy(rows_, from, row);
  kernel_.warp(inputs_, rows_, 1);  // `from` is unwarped
  Kernel::Row with;
  kernel_.row(inputs_, 0, rows_, inputs_, rows_, with);
  // The new row of the Cholesky factor L: L l = k, and below it sqrt(k(x, x) - l'l). Both include
  // the mean's variance: Kernel::variance() contains it, the values of row() do not.
  VectorXd line = with.value + kMeanVariance;
  solve(line);
  factor_.row(rows_).head(rows_) = line.transpose();
  const double left = Kernel::variance() + kernel_.noise() - line.squaredNorm();
  // At least the noise in exact arithmetic, but rounding may take it below.
  factor_(rows_, rows_) = std::sqrt(std::max(left, kernel_.noise()));
  ++rows_;
}

void Posterior::truncate(Index rows) { rows_ = std::min(rows_, rows); }

void Posterior::solve_transposed(VectorXd& values) const {
  const Index n = values.size();
  factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>().transpose().solveInPlace(values);
}

void Posterior::set_targets(const VectorXd& targets) {
  observed_ = targets.size();
  // alpha = K^-1 y in two steps. Halfway, L^-1 y is white noise under the model, so its mean square
  // is the scale of the output; the prior counts as kScaleObservations of scale 1.
  alpha_ = targets;
  solve(alpha_);
  scale_ = (alpha_.squaredNorm() + kScaleObservations) /
           (static_cast<double>(observed_) + kScaleObservations);
  solve_transposed(alpha_);
  fitted_ = targets - kernel_.noise() * alpha_;
}

// Computes mean and deviation; leaves factor^-1 k in `solved`.
Posterior::Prediction Posterior::moments(const Kernel::Row& row, VectorXd& solved) const {
  Prediction out;
  solved = row.value + kMeanVariance;
  out.mean = solved.head(observed_).dot(alpha_);
  solve(solved);
  const double variance = std::max(Kernel::variance() - solved.squaredNorm(), kLeastVariance);
  out.sd = std::sqrt(scale_ * variance);
  return out;
}

Inputs Posterior::warped(const Inputs& points, Index x) const {
  Inputs out(1, points.at.cols());
  out.copy(0, points, x);
  kernel_.warp(out, 0, 1);
  return out;
}

Posterior::Prediction Posterior::predict_without_slopes(const Inputs& points, Index x) const {
  Kernel::Row row;
  kernel_.row(inputs_, 0, rows_, warped(points, x), 0, row);
  VectorXd solved;
  return moments(row, solved);
}

Posterior::Prediction Posterior::predict(const Inputs& points, Index x) const {
  const Inputs here = warped(points, x);
  Kernel::Row row;
  kernel_.row(inputs_, 0, rows_, here, 0, row);
  VectorXd solved;
  Prediction out = moments(row, solved);
  // The mean is k' alpha, the variance v - k' K^-1 k: both slopes are sums of the kernel's slopes,
  // weighted by alpha and by K^-1 k.
  solve_transposed(solved);
  MatrixXd weights = MatrixXd::Zero(rows_, 2);
  weights.col(0).head(observed_) = alpha_;
  weights.col(1) = solved;
  MatrixXd slopes = kernel_.slopes(inputs_, here, 0, row, weights);
  for (Index i = 0; i < slopes.rows(); ++i) {
    if (slopes(i, 0) == 0 && slopes(i, 1) == 0) continue;  // a choice, or inactive
    slopes.row(i) *= kernel_.warp_slope(i, points.at(x, i));
  }
  out.mean_slope = slopes.col(0);
  // sd = sqrt(scale variance), and the slope of k' K^-1 k is twice slopes.col(1).
  out.sd_slope = slopes.col(1) * (-scale_ / out.sd);
  return out;
}

Pool::Pool(const Posterior& posterior, Inputs candidates)
    : posterior_(posterior),
      candidates_(std::move(candidates)),
      base_(posterior.rows_),
      rows_(posterior.rows_) {
  posterior.kernel_.warp(candidates_, 0, size());
  const Index capacity = posterior.factor_.rows();
  solved_.resize(capacity, size());
  variance_.resize(size(), capacity - base_ + 1);
  Kernel::Row row;
  for (Index c = 0; c < size(); ++c) {
    posterior.kernel_.row(posterior.inputs_, 0, base_, candidates_, c, row);
    solved_.col(c).head(base_) = row.value + kMeanVariance;
  }
  // Rows that are added later have no target, so the mean stays. `solved_` still holds k here.
  mean_ = solved_.topRows(posterior.observed_).transpose() * posterior.alpha_;
  auto block = solved_.topRows(base_);
  posterior.factor_.topLeftCorner(base_, base_).triangularView<Eigen::Lower>().solveInPlace(block);
  variance_.col(0) = Kernel::variance() - block.colwise().squaredNorm().transpose().array();
}

void Pool::add_row(Index row) {
  Kernel::Row with;
  posterior_.kernel_.row(candidates_, 0, size(), posterior_.inputs_, row, with);
  const VectorXd line = posterior_.factor_.row(row).head(row).transpose();
  VectorXd values = with.value + kMeanVariance;
  // The next row of L^-1 k for every candidate at once: one step of forward substitution.
  values.noalias() -= solved_.topRows(row).transpose() * line;
  values /= posterior_.factor_(row, row);
  solved_.row(row) = values.transpose();
  variance_.col(row + 1 - base_) = variance_.col(row - base_).array() - values.array().square();
}

void Pool::update() {
  // Only the number of rows shows that some were removed: see the header.
  rows_ = std::min(rows_, posterior_.rows_);
  for (; rows_ < posterior_.rows_; ++rows_) add_row(rows_);
}

VectorXd Pool::sd() const {
  return (posterior_.scale_ * variance_.col(rows_ - base_).array().max(kLeastVariance)).sqrt();
}

double Pool::correlation(Index a, Index b) const {
  Kernel::Row row;
  posterior_.kernel_.row(candidates_, a, 1, candidates_, b, row);
  return row.value[0];
}

}  // namespace fettle::search::gp
