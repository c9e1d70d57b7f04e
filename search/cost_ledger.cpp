#include "search/cost_ledger.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/maths/fit_schedule.h"

namespace fettle::search {

void CostLedger::add_trial(const Point* point) {
  points_.push_back(point != nullptr ? *point : Point());
}

void CostLedger::remove_trial() { points_.pop_back(); }

void CostLedger::clear() { *this = CostLedger(budget_); }

std::optional<double> CostLedger::cost_to_the_end(const api::Fact& fact) const {
  if (fact.kind == api::FactKind::kResult) return fact.cost;
  if (fact.step <= 0) return std::nullopt;
  const double share = static_cast<double>(budget_.last_step) / static_cast<double>(fact.step);
  return std::min(*fact.cost * std::max(share, 1.0), std::numeric_limits<double>::max());
}

void CostLedger::add_event(const Event& event) {
  const api::Fact& fact = event.fact;
  const bool usable = fact.cost && std::isfinite(*fact.cost) && *fact.cost >= 0;
  if (fact.kind == api::FactKind::kRung || !usable) return;
  // A fact holds the trial's total cost so far, so the newest one replaces the others.
  double& spent = spent_[event.trial];
  total_spent_ += *fact.cost - spent;
  spent = *fact.cost;
  const std::optional<double> cost = cost_to_the_end(fact);
  // No point: the trial's parameters are outside this space.
  if (!cost || points_[static_cast<std::size_t>(event.trial)].empty()) return;
  ++version_;
  // A new cost of a known trial replaces its old one and does not count towards the next fit.
  if (!to_the_end_.insert_or_assign(event.trial, *cost).second) return;
  order_.push_back(event.trial);
  // Kept as it is now: a fit must not depend on costs that become known later (fit_schedule.h).
  if (order_.size() < next_fit_) return;
  last_fit_ = observations(kMostFitted);
  next_fit_ = static_cast<std::size_t>(next_fit(static_cast<std::int64_t>(order_.size())));
}

CostLedger::Observations CostLedger::observations(std::size_t most) const {
  Observations out;
  out.count = order_.size();
  const std::size_t count = std::min(most, order_.size());
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    out.trials.push_back(order_[i * order_.size() / count]);
    const double cost = to_the_end_.at(out.trials.back());
    if (cost > 0) least = std::min(least, cost);
    out.log_costs.push_back(cost);  // the logarithm follows
  }
  if (std::isinf(least)) least = 1;  // all costs are 0, or none is known
  for (double& cost : out.log_costs) cost = std::log(std::max(cost, least));
  if (out.log_costs.empty()) return out;
  std::vector<double> sorted = out.log_costs;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double farthest = std::log(kFarthest);
  for (double& cost : out.log_costs) {
    cost = std::clamp(cost, *middle - farthest, *middle + farthest);
  }
  return out;
}

double CostLedger::weight(std::int64_t begun) const {
  const auto trials = static_cast<double>(begun);
  double used = 0;
  if (budget_.max_trials > 0) used = trials / static_cast<double>(budget_.max_trials);
  if (budget_.max_cost) used = std::max(used, trials * average() / *budget_.max_cost);
  return 1 - std::clamp(used, 0.0, 1.0);
}

double CostLedger::cost_per_trial() const {
  if (budget_.max_trials == 0) return 0;
  return budget_.max_cost ? *budget_.max_cost / static_cast<double>(budget_.max_trials) : average();
}

double CostLedger::average() const {
  return spent_.empty() ? 0 : total_spent_ / static_cast<double>(spent_.size());
}

}  // namespace fettle::search
