#include "search/gp/outcomes.h"

#include <algorithm>

#include "search/gp/fit_schedule.h"
#include "search/gp/warp.h"

namespace fettle::search::gp {
namespace {

// What a trial is compared by; nothing where it has no result, or several.
std::optional<double> loss_of(const Ranking& ranking, std::int64_t trial) {
  const std::vector<double>* losses = ranking.losses(trial);
  if (losses == nullptr || losses->size() != 1) return std::nullopt;
  return losses->front();
}

}  // namespace

Outcomes::Outcomes(const std::vector<api::Objective>& objectives) : ranking_(objectives) {}

void Outcomes::add_trial(const Point* point) {
  if (point != nullptr) pending_.insert(static_cast<std::int64_t>(points_.size()));
  points_.push_back(point != nullptr ? *point : Point());
  has_ended_.push_back(false);
}

void Outcomes::remove_trial() {
  points_.pop_back();
  has_ended_.pop_back();
  pending_.erase(static_cast<std::int64_t>(points_.size()));
}

void Outcomes::add_event(const Event& event) {
  const auto trial = static_cast<std::size_t>(event.trial);
  if (event.fact.kind == api::FactKind::kRung || points_[trial].empty()) return;
  ranking_.add(event.trial, event.fact);
  ++version_;
  if (has_ended_[trial]) return;
  ++stagnation_;
  const std::optional<double> loss = loss_of(ranking_, event.trial);
  if (loss && (!best_ || *loss < *best_)) {
    best_ = loss;
    stagnation_ = 0;
  }
  has_ended_[trial] = true;
  ended_.push_back(event.trial);
  pending_.erase(event.trial);
  const auto count = static_cast<std::int64_t>(ended_.size());
  const bool fits = count == next_fit_;
  if (!fits && !is_anchor(count)) return;
  Prefix now = prefix();
  if (is_anchor(count)) anchor_ = now;
  if (!fits) return;
  last_fit_ = std::move(now);
  next_fit_ = next_fit(count);
}

std::vector<double> Outcomes::target_of_each() {
  const std::vector<std::int64_t>& order = ranking_.order();
  std::vector<Ranked> ranked;
  ranked.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    ranked.push_back({loss_of(ranking_, order[i]), i > 0 && ranking_.tied(order[i - 1], order[i])});
  }
  const std::vector<double> warped = warp(ranked);
  std::vector<double> out(points_.size(), 0.0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    out[static_cast<std::size_t>(order[i])] = warped[i];
  }
  return out;
}

Eigen::VectorXd Outcomes::targets(const std::vector<std::int64_t>& trials) {
  const std::vector<double> all = target_of_each();
  Eigen::VectorXd out(static_cast<Eigen::Index>(trials.size()));
  for (std::size_t i = 0; i < trials.size(); ++i) {
    out[static_cast<Eigen::Index>(i)] = all[static_cast<std::size_t>(trials[i])];
  }
  return out;
}

// The better half of `most`, then every k-th of those that follow; in the order of `trials`.
std::vector<std::int64_t> Outcomes::select(const std::vector<std::int64_t>& trials,
                                           std::size_t most) {
  if (trials.size() <= most) return trials;
  const std::set<std::int64_t> wanted(trials.begin(), trials.end());
  std::vector<std::int64_t> order;  // best first
  for (const std::int64_t trial : ranking_.order()) {
    if (wanted.count(trial) > 0) order.push_back(trial);
  }
  const std::size_t best = most / 2;
  const std::size_t others = most - best;
  std::set<std::int64_t> chosen(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best));
  for (std::size_t i = 0; i < others; ++i) {
    chosen.insert(order[best + i * (order.size() - best) / others]);
  }
  std::vector<std::int64_t> out;
  for (const std::int64_t trial : trials) {
    if (chosen.count(trial) > 0) out.push_back(trial);
  }
  return out;
}

Outcomes::Prefix Outcomes::prefix() {
  Prefix out;
  out.count = static_cast<std::int64_t>(ended_.size());
  out.trials = select(ended_, kMostModelled);
  out.fitted = select(out.trials, kMostFitted);
  out.targets = targets(out.fitted);
  return out;
}

}  // namespace fettle::search::gp
