// CostModel: what a trial at a point is predicted to cost, to its end: a Gaussian process
// (kernel.h, likelihood.h) over the logarithms of what trials did cost (cost_ledger.h), so that
// costs multiply and span decades, as those of trainings do.
//
// What is predicted is the median. The mean of a log-normal cost would count a place that is not
// known as expensive, the mean of its inverse as cheap: exploring is the improvement's business.
// Invariant: a function of what the ledger was told, whatever was asked before. Not synchronised.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "search/cost_ledger.h"
#include "search/gp/candidates.h"
#include "search/gp/kernel.h"
#include "search/gp/likelihood.h"
#include "search/gp/posterior.h"
#include "search/space/space.h"

namespace fettle::search::gp {

class CostModel {
 public:
  // Fewer costs than this say nothing of others.
  static constexpr std::size_t kLeastCosts = 3;
  // Trials that predictions rest on, at most.
  static constexpr std::size_t kMostModelled = 192;

  // Keeps a reference to `space`.
  explicit CostModel(const Space& space) : space_(space), axes_(axes_of(space)) {}

  // Brings it up to what `ledger` knows.
  void update(const CostLedger& ledger);
  void reset();

  // Whether it predicts anything, and not the same everywhere.
  bool knows() const { return known_; }
  bool tells_apart() const { return posterior_.has_value(); }

  // The logarithm of the predicted cost, at a row of `points`; with the derivatives by its places
  // on the unit interval, or without. 0 if nothing is known.
  double log_cost(const Inputs& points, Index row) const;
  double log_cost(const Inputs& points, Index row, Eigen::VectorXd& slope) const;
  // At every row.
  Eigen::VectorXd log_costs(const Inputs& points) const;

 private:
  void fit(const CostLedger& ledger);

  const Space& space_;
  const Axes axes_;
  std::int64_t version_ = -1;  // of the ledger
  std::size_t fitted_to_ = 0;  // costs that the hyperparameters rest on
  std::optional<Hyperparameters> fitted_;
  bool known_ = false;
  std::optional<Posterior> posterior_;  // none if all costs are the same
  double centre_ = 0;                   // of the logarithms
  double spread_ = 0;                   // their deviation
};

}  // namespace fettle::search::gp
