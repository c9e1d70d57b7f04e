#include "search/ranking.h"

#include <algorithm>
#include <cmath>

namespace fettle::search {
namespace {

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool better_somewhere = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better_somewhere |= a[i] < b[i];
  }
  return better_somewhere;
}

}  // namespace

Ranking::Ranking(const std::vector<api::Objective>& objectives) {
  for (const api::Objective& objective : objectives) {
    signs_.push_back(objective.direction == api::Direction::kMaximize ? -1.0 : 1.0);
  }
}

Ranking::Entry Ranking::entry_of(const api::Fact& fact) const {
  Entry out;
  out.learnt = facts_;
  if (fact.kind == api::FactKind::kFailed || fact.infeasible) return out;
  if (fact.values.size() < signs_.size()) return out;
  for (std::size_t i = 0; i < signs_.size(); ++i) {
    if (!fact.values[i] || !std::isfinite(*fact.values[i])) return out;
    out.losses.push_back(signs_[i] * *fact.values[i]);
  }
  out.kind = fact.kind == api::FactKind::kStopped ? Class::kStopped : Class::kResult;
  out.step = out.kind == Class::kStopped ? fact.step : 0;
  return out;
}

void Ranking::add(std::int64_t trial, const api::Fact& fact) {
  ++facts_;
  if (fact.kind == api::FactKind::kRung) return;
  const auto [at, is_new] = entries_.try_emplace(trial);
  at->second = entry_of(fact);
  if (signs_.size() > 1 || !is_new) {
    stale_ = true;  // fronts or places of others may have changed
  } else if (!stale_) {
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

std::optional<double> Ranking::loss(std::int64_t trial) const {
  const Entry& entry = entries_.at(trial);
  if (entry.kind != Class::kResult || signs_.size() != 1) return std::nullopt;
  return entry.losses[0];
}

bool Ranking::tied(std::int64_t a, std::int64_t b) const {
  const Entry& x = entries_.at(a);
  const Entry& y = entries_.at(b);
  if (x.kind != y.kind || x.front != y.front || x.step != y.step) return false;
  return signs_.size() > 1 || x.losses == y.losses;
}

// Front by front over the lexicographic order, in which nothing is dominated by what comes later
// (Zhang et al. 2015, "efficient non-dominated sort").
void Ranking::assign_fronts() {
  std::vector<Entry*> results;
  for (auto& [trial, entry] : entries_) {
    if (entry.kind == Class::kResult) results.push_back(&entry);
  }
  std::sort(results.begin(), results.end(),
            [](const Entry* a, const Entry* b) { return a->losses < b->losses; });
  std::vector<std::vector<const Entry*>> fronts;
  for (Entry* entry : results) {
    std::size_t front = 0;
    const auto dominates_entry = [entry](const Entry* other) {
      return dominates(other->losses, entry->losses);
    };
    while (front < fronts.size() &&
           std::any_of(fronts[front].rbegin(), fronts[front].rend(), dominates_entry)) {
      ++front;
    }
    if (front == fronts.size()) fronts.emplace_back();
    fronts[front].push_back(entry);
    entry->front = static_cast<std::int64_t>(front);
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
