#include "search/gp/expected_cost.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace fettle::search::gp {

ExpectedCost::ExpectedCost(const Space& space, const std::optional<CostBudget>& budget)
    : space_(space), model_(space) {
  if (budget) ledger_.emplace(*budget);
}

void ExpectedCost::add_trial(const Point* point) {
  if (ledger_) ledger_->add_trial(point);
}

void ExpectedCost::remove_trial() {
  if (ledger_) ledger_->remove_trial();
}

void ExpectedCost::add_event(const Event& event) {
  if (ledger_) ledger_->add_event(event);
}

void ExpectedCost::reset() {
  if (ledger_) ledger_->clear();
  model_.reset();
  weight_ = 0;
}

void ExpectedCost::update(std::int64_t begun) {
  if (!ledger_) return;
  model_.update(*ledger_);
  weight_ = model_.has_prediction() ? ledger_->weight(begun) : 0;
  cost_per_trial_ = ledger_->cost_per_trial();
}

std::string ExpectedCost::words() const {
  const auto rounded = [](double x) { return Json(std::round(100 * x) / 100).dump(); };
  std::string out = rounded(weight_) + " times the logarithm of the predicted cost";
  return cost_per_trial_ > 0 ? out + " plus " + rounded(cost_per_trial_) : out;
}

double ExpectedCost::with_cost_per_trial(double log_cost) const {
  const double log_trial = std::log(cost_per_trial_);
  const double larger = std::max(log_cost, log_trial);
  return larger + std::log1p(std::exp(std::min(log_cost, log_trial) - larger));
}

double ExpectedCost::at(const Inputs& points, Index row, Eigen::VectorXd& slope) const {
  const double log_cost = model_.log_cost(points, row, slope);
  const double log_used = with_cost_per_trial(log_cost);
  slope *= -weight_ * std::exp(log_cost - log_used);
  return -weight_ * log_used;
}

void ExpectedCost::set_candidates(const Inputs& points) {
  if (model_.has_prediction()) candidates_ = model_.log_costs(points);
}

double ExpectedCost::log_cost(const Point& point) const {
  Inputs inputs(1, static_cast<Index>(space_.dimensions()));
  inputs.set(0, space_, point);
  return model_.log_cost(inputs, 0);
}

std::optional<double> ExpectedCost::cost(const Point& point) const {
  return model_.has_prediction() ? std::optional(std::exp(log_cost(point))) : std::nullopt;
}

}  // namespace fettle::search::gp
