#include "search/gp/cost_model.h"

#include <cmath>
#include <utility>

namespace fettle::search::gp {
namespace {

constexpr int kFitEvaluations = 40;  // of the likelihood, per start
constexpr double kLongStart = 1.5;   // the second start's length scales: e^1.5 times the prior's
constexpr double kFlat = 1e-9;       // deviation of logarithms that count as equal

struct Standardised {
  Eigen::VectorXd targets;
  double centre = 0;
  double spread = 0;
};

Standardised standardise(const std::vector<double>& logs) {
  Standardised out;
  out.targets = Eigen::Map<const Eigen::VectorXd>(logs.data(), static_cast<Index>(logs.size()));
  out.centre = out.targets.mean();
  out.targets.array() -= out.centre;
  out.spread = std::sqrt(out.targets.squaredNorm() / static_cast<double>(logs.size()));
  if (out.spread > kFlat) out.targets /= out.spread;
  return out;
}

}  // namespace

// Starts from the prior each time, so that a new model reaches the same fit as one that saw the
// history grow.
void CostModel::fit(const CostLedger& ledger) {
  const CostLedger::Observations& observed = ledger.last_fit();
  if (fitted_ && observed.count == fitted_to_) return;
  // The ledger keeps these observations until the next fit is due (fit_schedule.h).
  fitted_to_ = observed.count;
  const Inputs inputs = inputs_of(space_, ledger, observed.trials);
  const Standardised costs = standardise(observed.log_costs);
  const Likelihood likelihood(axes_, inputs, costs.targets);
  fitted_ = likelihood.fit({likelihood.prior_mode(/*log_factor=*/0, /*warps=*/false),
                            likelihood.prior_mode(kLongStart, /*warps=*/false)},
                           kFitEvaluations);
}

void CostModel::update(const CostLedger& ledger) {
  if (version_ == ledger.version()) return;
  version_ = ledger.version();
  posterior_.reset();
  known_ = ledger.size() >= kLeastCosts;
  if (!known_) return;
  const CostLedger::Observations observed = ledger.observations(kMostModelled);
  Standardised costs = standardise(observed.log_costs);
  centre_ = costs.centre;
  spread_ = costs.spread;
  if (spread_ <= kFlat) return;  // all costs are equal, so log_cost() is centre_ everywhere
  fit(ledger);
  const Inputs inputs = inputs_of(space_, ledger, observed.trials);
  posterior_.emplace(axes_, *fitted_, inputs, inputs.at.rows());
  posterior_->set_targets(costs.targets);
}

void CostModel::reset() {
  version_ = -1;
  fitted_.reset();
  posterior_.reset();
  known_ = false;
}

double CostModel::log_cost(const Inputs& points, Index row) const {
  if (!known_) return 0;
  if (!posterior_) return centre_;
  return centre_ + spread_ * posterior_->predict_without_slopes(points, row).mean;
}

double CostModel::log_cost(const Inputs& points, Index row, Eigen::VectorXd& slope) const {
  if (!posterior_) {
    slope = Eigen::VectorXd::Zero(points.at.cols());
    return known_ ? centre_ : 0;
  }
  const Posterior::Prediction at = posterior_->predict(points, row);
  slope = spread_ * at.mean_slope;
  return centre_ + spread_ * at.mean;
}

Eigen::VectorXd CostModel::log_costs(const Inputs& points) const {
  Eigen::VectorXd out = Eigen::VectorXd::Constant(points.at.rows(), known_ ? centre_ : 0);
  if (posterior_) out += spread_ * Pool(*posterior_, points).mean();
  return out;
}

}  // namespace fettle::search::gp
