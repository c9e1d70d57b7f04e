#include "search/gp/price.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace fettle::search::gp {

Price::Price(const Space& space, const std::optional<CostBudget>& budget)
    : space_(space), model_(space) {
  if (budget) ledger_.emplace(*budget);
}

void Price::add_trial(const Point* point) {
  if (ledger_) ledger_->add_trial(point);
}

void Price::remove_trial() {
  if (ledger_) ledger_->remove_trial();
}

void Price::add_event(const Event& event) {
  if (ledger_) ledger_->add_event(event);
}

void Price::reset() {
  if (ledger_) ledger_->clear();
  model_.reset();
  weight_ = 0;
}

void Price::update(std::int64_t begun) {
  if (!ledger_) return;
  model_.update(*ledger_);
  weight_ = model_.knows() ? ledger_->weight(begun) : 0;
  place_ = ledger_->cost_of_a_place();
}

std::string Price::words() const {
  const auto rounded = [](double x) { return Json(std::round(100 * x) / 100).dump(); };
  std::string out = rounded(weight_) + " times the logarithm of the predicted cost";
  return place_ > 0 ? out + " plus " + rounded(place_) : out;
}

double Price::with_place(double log_cost) const {
  const double log_place = std::log(place_);
  const double larger = std::max(log_cost, log_place);
  return larger + std::log1p(std::exp(std::min(log_cost, log_place) - larger));
}

double Price::at(const Inputs& points, Index row, Eigen::VectorXd& slope) const {
  const double log_cost = model_.log_cost(points, row, slope);
  const double log_used = with_place(log_cost);
  slope *= -weight_ * std::exp(log_cost - log_used);
  return -weight_ * log_used;
}

void Price::set_candidates(const Inputs& points) {
  if (model_.knows()) candidates_ = model_.log_costs(points);
}

double Price::log_cost(const Point& point) const {
  Inputs inputs(1, static_cast<Index>(space_.dimensions()));
  inputs.set(0, space_, point);
  return model_.log_cost(inputs, 0);
}

std::optional<double> Price::cost(const Point& point) const {
  return model_.knows() ? std::optional(std::exp(log_cost(point))) : std::nullopt;
}

}  // namespace fettle::search::gp
