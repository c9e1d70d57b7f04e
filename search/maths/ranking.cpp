#include "search/maths/ranking.h"

#include <algorithm>
#include <cmath>

#include "search/maths/pareto.h"

namespace fettle::search {

Ranking::Ranking(const std::vector<api::Objective>& objectives) {
  for (const api::Objective& objective : objectives) {
    signs_.push_back(objective.direction == api::Direction::kMaximize ? -1.0 : 1.0);
  }
}

Ranking::Entry Ranking::entry_of(const api::Fact& fact) const {
  Entry out;
  out.learnt = facts_;
  if (fact.kind == api::FactKind::kFailed || fact.infeasible) return out;
  if (fact.values.size() < signs_.size()) return out;  // as infeasible: an objective has no value
  for (std::size_t i = 0; i < signs_.size(); ++i) {
    if (!fact.values[i] || !std::isfinite(*fact.values[i])) return out;
    out.losses.push_back(signs_[i] * *fact.values[i]);
  }
  out.kind = fact.kind == api::FactKind::kStopped ? Class::kStopped : Class::kResult;
  out.step = out.kind == Class::kStopped ? fact.step : 0;  // results do not compare by step
  return out;
}

void Ranking::add(std::int64_t trial, const api::Fact& fact) {
  ++facts_;
  if (fact.kind == api::FactKind::kRung) return;
  const auto [at, is_new] = entries_.try_emplace(trial);
  at->second = entry_of(fact);
  if (signs_.size() > 1 || !is_new) {
    stale_ = true;  // fronts or positions of others may have changed
  } else if (!stale_) {
    // A first end with one objective moves no other trial. If stale_, order() sorts all anew.
    const auto place = std::upper_bound(order_.begin(), order_.end(), trial,
                                        [this](auto a, auto b) { return better(a, b); });
    order_.insert(place, trial);
  }
}

bool Ranking::better(std::int64_t a, std::int64_t b) const {
  const Entry& x = entries_.at(a);
  const Entry& y = entries_.at(b);
  if (x.kind != y.kind) return x.kind < y.kind;
  if (x.front != y.front) return x.front < y.front;
  if (x.step != y.step) return x.step > y.step;
  if (!x.losses.empty() && !y.losses.empty() && x.losses[0] != y.losses[0]) {
    return x.losses[0] < y.losses[0];
  }
  return x.learnt < y.learnt;
}

bool Ranking::tied(std::int64_t a, std::int64_t b) const {
  const Entry& x = entries_.at(a);
  const Entry& y = entries_.at(b);
  if (x.kind != y.kind || x.front != y.front || x.step != y.step) return false;
  return signs_.size() > 1 || x.losses == y.losses;
}

const std::vector<double>* Ranking::losses(std::int64_t trial) const {
  const auto at = entries_.find(trial);
  return at == entries_.end() || at->second.kind != Class::kResult ? nullptr : &at->second.losses;
}

bool Ranking::infeasible(std::int64_t trial) const {
  const auto at = entries_.find(trial);
  return at != entries_.end() && at->second.kind == Class::kInfeasible;
}

void Ranking::assign_fronts() {
  std::vector<Entry*> results;
  std::vector<Losses> losses;
  for (auto& [trial, entry] : entries_) {
    if (entry.kind != Class::kResult) continue;
    results.push_back(&entry);
    losses.push_back(entry.losses);
  }
  const std::vector<std::size_t> fronts = front_numbers(losses);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i]->front = static_cast<std::int64_t>(fronts[i]);
  }
}

const std::vector<std::int64_t>& Ranking::order() {
  if (!stale_) return order_;
  if (signs_.size() > 1) assign_fronts();
  order_.clear();
  for (const auto& [trial, entry] : entries_) order_.push_back(trial);
  std::sort(order_.begin(), order_.end(), [this](auto a, auto b) { return better(a, b); });
  stale_ = false;
  return order_;
}

}  // namespace fettle::search
