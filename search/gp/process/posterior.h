// Posterior: a Gaussian process conditioned on points; the first rows have targets.
//
// Rows: first the observed points, then the pending points. The mean comes from the observed rows;
// the variance is conditioned on all of them, as if each pending trial would end at its predicted
// mean ("kriging believer"; the variance does not depend on the value). Each additional row costs
// O(rows^2): the Cholesky factor grows by one line. Invariant: the state is a function of the rows
// and their order, not of removed rows: a sampler that saw them one by one and a new one have the
// same bits. Not synchronised.
#pragma once

#include <Eigen/Core>

#include "search/gp/process/kernel.h"

namespace fettle::search::gp {

class Posterior {
 public:
  // Conditions on all rows of `inputs`; `capacity`: the maximum number of rows.
  Posterior(const Axes& axes, const Hyperparameters& hyperparameters, const Inputs& inputs,
            Index capacity);

  // Adds row `row` of `from`, or removes all rows after the first `rows`.
  void append(const Inputs& from, Index row);
  void truncate(Index rows);
  Index rows() const { return rows_; }

  // The prior correlation of the two points in `points`, from 0 to 1.
  double correlation(Inputs points) const;

  // Sets the targets of the first targets.size() rows and fits the output variance to them.
  void set_targets(const Eigen::VectorXd& targets);
  double scale() const { return scale_; }
  double noise() const { return scale_ * kernel_.noise(); }  // variance
  // The means at the observed rows: the targets without noise.
  const Eigen::VectorXd& fitted() const { return fitted_; }

  struct Prediction {
    double mean = 0;
    double sd = 0;  // of the function, without noise
    Eigen::VectorXd mean_slope;
    Eigen::VectorXd sd_slope;
  };
  // Predicts at row `x` of `points`, with or without the derivatives with respect to its positions
  // on the unit interval.
  Prediction predict(const Inputs& points, Index x) const;
  Prediction predict_without_slopes(const Inputs& points, Index x) const;

 private:
  friend class Pool;
  void solve(Eigen::VectorXd& values) const;             // with the Cholesky factor, in place
  void solve_transposed(Eigen::VectorXd& values) const;  // with its transpose
  Inputs warped(const Inputs& points, Index x) const;
  Prediction moments(const Kernel::Row& row, Eigen::VectorXd& solved) const;

  Kernel kernel_;
  Inputs inputs_;           // `capacity` rows
  Eigen::MatrixXd factor_;  // lower triangle: K + noise I = factor factor'
  Index rows_ = 0;
  Index observed_ = 0;
  Eigen::VectorXd alpha_;  // (K + noise I)^-1 targets, for the observed rows
  Eigen::VectorXd fitted_;
  double scale_ = 1;
};

// Predictions at many fixed candidates, while rows are added to a Posterior and removed.
class Pool {
 public:
  // Reads `posterior` now and in update(); it must outlive the pool.
  Pool(const Posterior& posterior, Inputs candidates);

  // Call after rows were added to or removed from the posterior, and between a removal and the next
  // addition, or rows that were replaced go unnoticed. O(rows * candidates) per row.
  void update();

  Index size() const { return candidates_.at.rows(); }
  const Eigen::VectorXd& mean() const { return mean_; }
  Eigen::VectorXd sd() const;
  // The prior correlation of two candidates, from 0 to 1.
  double correlation(Index a, Index b) const;

 private:
  void add_row(Index row);

  const Posterior& posterior_;
  Inputs candidates_;       // warped
  Eigen::MatrixXd solved_;  // factor^-1 K(rows, candidates)
  Index base_ = 0;          // number of rows at construction
  Index rows_ = 0;
  Eigen::VectorXd mean_;
  Eigen::MatrixXd variance_;  // column r: without scale, after base_ + r rows
};

}  // namespace fettle::search::gp
