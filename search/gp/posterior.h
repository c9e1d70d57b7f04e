// Posterior: a Gaussian process after some points, of which the first ones have targets.
//
// Rows: first the observed points, then pending ones. The mean is that of the observed rows; the
// variance is conditioned on all of them, as if each pending trial were going to end at its
// predicted mean ("kriging believer"; the variance does not depend on the value). A row more costs
// O(rows^2): the Cholesky factor grows by one line.
// Invariant: the state is a function of the rows and the order in which they came, not of rows that
// were taken back: the same bits in a sampler that saw them one by one and in a new one.
// Not synchronised.
#pragma once

#include <Eigen/Core>

#include "search/gp/kernel.h"

namespace fettle::search::gp {

class Posterior {
 public:
  // Of all rows of `inputs`; `capacity`: the most rows there will be.
  Posterior(const Axes& axes, const Hyperparameters& hyperparameters, const Inputs& inputs,
            Index capacity);

  // Adds row `row` of `from`, or takes back all rows after the first `rows`.
  void append(const Inputs& from, Index row);
  void truncate(Index rows);
  Index rows() const { return rows_; }

  // The covariance of the only two points of `points` as the kernel sees it, from 0 to 1.
  double likeness(Inputs points) const;

  // Of the first targets.size() rows. Fits the output variance along with it.
  void set_targets(const Eigen::VectorXd& targets);
  double scale() const { return scale_; }
  double noise() const { return scale_ * kernel_.noise(); }  // variance
  // The means at the observed rows: what is left of the targets without noise.
  const Eigen::VectorXd& fitted() const { return fitted_; }

  struct Prediction {
    double mean = 0;
    double sd = 0;  // of the function, without noise
    Eigen::VectorXd mean_slope;
    Eigen::VectorXd sd_slope;
  };
  // At row `x` of `points`; with the derivatives by its places on the unit interval, or without.
  Prediction predict(const Inputs& points, Index x) const;
  Prediction predict_without_slopes(const Inputs& points, Index x) const;

 private:
  friend class Pool;
  void solve(Eigen::VectorXd& values) const;             // by the Cholesky factor, in place
  void solve_transposed(Eigen::VectorXd& values) const;  // by its transpose
  Inputs bent(const Inputs& points, Index x) const;
  Prediction moments(const Kernel::Row& row, Eigen::VectorXd& solved) const;

  Kernel kernel_;
  Inputs inputs_;           // of `capacity` rows
  Eigen::MatrixXd factor_;  // lower triangle: K + noise I = factor factor'
  Index rows_ = 0;
  Index observed_ = 0;
  Eigen::VectorXd alpha_;  // (K + noise I)^-1 targets, of the observed rows
  Eigen::VectorXd fitted_;
  double scale_ = 1;
};

// Predictions at many candidates that stay, while rows are added to a Posterior and taken back.
class Pool {
 public:
  // Reads `posterior` now and in update(); it must outlive the pool.
  Pool(const Posterior& posterior, Inputs candidates);

  // After rows were added to or taken back from the posterior: O(rows * candidates) for each.
  void update();

  Index size() const { return candidates_.at.rows(); }
  const Eigen::VectorXd& mean() const { return mean_; }
  Eigen::VectorXd sd() const;
  // The covariance of two candidates as the kernel sees it, from 0 to 1.
  double likeness(Index a, Index b) const;

 private:
  void add_row(Index row);

  const Posterior& posterior_;
  Inputs candidates_;       // bent
  Eigen::MatrixXd solved_;  // factor^-1 K(rows, candidates)
  Index base_ = 0;          // rows that were there at first
  Index rows_ = 0;
  Eigen::VectorXd mean_;
  Eigen::MatrixXd variance_;  // column r: without scale, after base_ + r rows
};

}  // namespace fettle::search::gp
