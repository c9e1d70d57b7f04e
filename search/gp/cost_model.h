// CostModel: predicts the cost of a trial to its end: a Gaussian process (kernel.h, likelihood.h)
// over the logarithms of known costs (cost_ledger.h), since training costs multiply and span
// decades.
//
// It predicts the median. The mean of a log-normal cost would make an unknown region look
// expensive, the mean of its inverse would make it look cheap: exploration is left to the
// improvement. Invariant: a function of the ledger's contents, independent of earlier calls. Not
// synchronised.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "search/cost_ledger.h"
#include "search/gp/candidates.h"
#include "search/gp/process/kernel.h"
#include "search/gp/process/likelihood.h"
#include "search/gp/process/posterior.h"
#include "search/space/space.h"

namespace fettle::search::gp {

class CostModel {
 public:
  // With fewer costs there is no prediction.
  static constexpr std::size_t kLeastCosts = 3;
  // At most this many trials are used for predictions.
  static constexpr std::size_t kMostModelled = 192;

  // Keeps a reference to `space`.
  explicit CostModel(const Space& space) : space_(space), axes_(axes_of(space)) {}

  // Updates the model to the contents of `ledger`.
  void update(const CostLedger& ledger);
  void reset();

  // Whether the model predicts anything, and whether its predictions differ between points.
  bool has_prediction() const { return known_; }
  bool varies() const { return posterior_.has_value(); }

  // The logarithm of the predicted cost at a row of `points`, with or without the derivatives with
  // respect to its positions on the unit interval. 0 if nothing is known.
  double log_cost(const Inputs& points, Index row) const;
  double log_cost(const Inputs& points, Index row, Eigen::VectorXd& slope) const;
  // The same at every row.
  Eigen::VectorXd log_costs(const Inputs& points) const;

 private:
  void fit(const CostLedger& ledger);

  const Space& space_;
  const Axes axes_;
  std::int64_t version_ = -1;  // of the ledger
  std::size_t fitted_to_ = 0;  // number of costs that the hyperparameters were fitted to
  std::optional<Hyperparameters> fitted_;
  bool known_ = false;
  std::optional<Posterior> posterior_;  // nullopt if all costs are equal
  double centre_ = 0;                   // of the logarithms
  double spread_ = 0;                   // standard deviation of the logarithms
};

}  // namespace fettle::search::gp
