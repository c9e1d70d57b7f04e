#include "search/gp/targets.h"

#include <algorithm>
#include <cmath>

#include "search/gp/process/rank_transform.h"
#include "search/maths/ehvi.h"
#include "search/maths/fit_schedule.h"
#include "search/maths/loss.h"
#include "search/samplers/samplers.h"

namespace fettle::search::gp {
namespace {

// Reduces a fact to one objective. A trial with any value missing is infeasible for all, or it
// would look good on the others.
api::Fact of_objective(const api::Fact& fact, std::size_t objective, std::size_t objectives) {
  api::Fact out = fact;
  const bool complete = fact.values.size() >= objectives &&
                        std::all_of(fact.values.begin(), fact.values.end(), [](const auto& value) {
                          return value && std::isfinite(*value);
                        });
  out.infeasible = fact.infeasible || !complete;
  if (complete) out.values = {fact.values[objective]};
  return out;
}

}  // namespace

Targets::Targets(const std::vector<api::Objective>& objectives)
    : sign_(loss_sign(objectives)), objectives_(objectives.size()), ranking_(objectives) {
  if (objectives_ == 1 || objectives_ > kMostEhviObjectives) return;
  for (const api::Objective& objective : objectives) {
    rankings_.emplace_back(std::vector<api::Objective>{objective});
  }
}

void Targets::add_trial(const Point* point) {
  if (point != nullptr) pending_.insert(static_cast<std::int64_t>(points_.size()));
  points_.push_back(point != nullptr ? *point : Point());
  has_ended_.push_back(false);
}

void Targets::remove_trial() {
  points_.pop_back();
  has_ended_.pop_back();
  pending_.erase(static_cast<std::int64_t>(points_.size()));
}

// A trial that pauses ends several times. Each time its values are updated; its end counts once.
void Targets::add_event(const Event& event) {
  const auto trial = static_cast<std::size_t>(event.trial);
  // No point: the trial's parameters are outside this space.
  if (event.fact.kind == api::FactKind::kRung || points_[trial].empty()) return;
  ranking_.add(event.trial, event.fact);
  for (std::size_t i = 0; i < rankings_.size(); ++i) {
    rankings_[i].add(event.trial, of_objective(event.fact, i, objectives_));
  }
  ++version_;
  infeasible_.erase(event.trial);
  if (ranking_.infeasible(event.trial)) infeasible_.insert(event.trial);
  if (!has_ended_[trial]) add_end(event.trial);
}

void Targets::add_end(std::int64_t trial) {
  stagnation_ = improves(trial) ? 0 : stagnation_ + 1;
  has_ended_[static_cast<std::size_t>(trial)] = true;
  ended_.push_back(trial);
  pending_.erase(trial);
  keep_prefix();
}

// Hyperparameters are fitted only at certain lengths of the history, each fit starting from the fit
// at an anchor (fit_schedule.h). If the history has such a length now, keeps the prefix.
void Targets::keep_prefix() {
  const auto count = static_cast<std::int64_t>(ended_.size());
  const bool fits = count == next_fit_;
  if (!fits && !is_anchor(count)) return;
  Prefix now = prefix();
  if (is_anchor(count)) anchor_ = now;
  if (!fits) return;
  last_fit_ = std::move(now);
  next_fit_ = next_fit(count);
}

bool Targets::improves(std::int64_t trial) {
  const Losses* losses = ranking_.losses(trial);
  if (losses == nullptr) return false;
  const auto beaten = [&](const Losses& best) {
    return best == *losses || dominates(best, *losses);
  };
  if (std::any_of(best_.begin(), best_.end(), beaten)) return false;
  std::erase_if(best_, [&](const Losses& best) { return dominates(*losses, best); });
  best_.push_back(*losses);
  return true;
}

// With several objectives all losses on the front keep their values, even if few are worse.
Targets::Column Targets::column(std::size_t index) {
  Ranking& ranking = ranking_of(index);
  Column out;
  out.order = valued(ranking.order());
  std::set<std::int64_t> front;
  if (!rankings_.empty()) {
    const std::vector<std::int64_t> all = valued(ranking_.order());
    for (const std::int64_t trial : all) {
      if (!ranking_.tied(all.front(), trial)) break;  // several objectives: tied = same front
      front.insert(trial);
    }
  }
  std::vector<Ranked> ranked;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < out.order.size(); ++i) {
    const Losses* losses = ranking.losses(out.order[i]);
    // With several losses only fronts are modelled, and a trial has a rank but no value.
    const bool has_loss = losses != nullptr && losses->size() == 1;
    if (has_loss) out.losses.push_back(losses->front());
    ranked.push_back({has_loss ? std::optional(losses->front()) : std::nullopt,
                      i > 0 && ranking.tied(out.order[i - 1], out.order[i])});
    // All from the best to the last of the front in this order.
    if (front.count(out.order[i]) > 0) kept = i + 1;
  }
  out.targets = rank_transform(ranked, kept);
  return out;
}

std::vector<std::int64_t> Targets::valued(const std::vector<std::int64_t>& trials) const {
  std::vector<std::int64_t> out;
  for (const std::int64_t trial : trials) {
    if (infeasible_.count(trial) == 0) out.push_back(trial);
  }
  return out.empty() ? trials : out;
}

Eigen::VectorXd Targets::infeasibility(const std::vector<std::int64_t>& trials) const {
  if (infeasible_.empty()) return {};
  Eigen::VectorXd out(static_cast<Eigen::Index>(trials.size()));
  for (std::size_t i = 0; i < trials.size(); ++i) {
    out[static_cast<Eigen::Index>(i)] = infeasible_.count(trials[i]) > 0 ? 1 : -1;
  }
  return out;
}

Eigen::MatrixXd Targets::values(const std::vector<std::int64_t>& trials) {
  Eigen::MatrixXd out(static_cast<Eigen::Index>(trials.size()),
                      static_cast<Eigen::Index>(columns()));
  for (std::size_t k = 0; k < columns(); ++k) {
    const Column column = this->column(k);
    // By trial. Every entry of `trials`, which valued() chose, is in every column.
    std::vector<double> of_trial(points_.size(), 0.0);
    for (std::size_t i = 0; i < column.order.size(); ++i) {
      of_trial[static_cast<std::size_t>(column.order[i])] = column.targets[i];
    }
    for (std::size_t i = 0; i < trials.size(); ++i) {
      out(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(k)) =
          of_trial[static_cast<std::size_t>(trials[i])];
    }
  }
  return out;
}

// Cached: needed for each suggestion, but changed only by outcomes.
const Targets::Column& Targets::first_column() {
  if (first_version_ != version_) {
    first_column_ = column(0);
    first_version_ = version_;
  }
  return first_column_;
}

std::optional<double> Targets::spread() {
  const Column& first = first_column();
  const std::size_t third = first.order.size() * 3 / 4;
  if (objectives_ > 1 || third >= first.losses.size()) return std::nullopt;
  return first.losses[third] - first.losses.front();
}

std::optional<double> Targets::value_of(double target) {
  const Column& first = first_column();
  if (first.losses.empty()) return std::nullopt;
  const double loss = inverse_rank_transform(first.targets, first.losses, target);
  return std::isfinite(loss) ? std::optional(sign_ * loss) : std::nullopt;
}

// Selects the best most / 2, then an even spread of the rest; in the order of `trials`.
std::vector<std::int64_t> Targets::select(const std::vector<std::int64_t>& trials,
                                          std::size_t most) {
  if (trials.size() <= most) return trials;
  const std::set<std::int64_t> wanted(trials.begin(), trials.end());
  std::vector<std::int64_t> order;  // all of them, best first: every ended trial is ranked
  for (const std::int64_t trial : ranking_.order()) {
    if (wanted.count(trial) > 0) order.push_back(trial);
  }
  const std::size_t best = most / 2;
  const std::size_t others = most - best;
  std::set<std::int64_t> chosen(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best));
  for (std::size_t i = 0; i < others; ++i) {
    // Distinct for each i, since the rest has more than `others` trials.
    chosen.insert(order[best + i * (order.size() - best) / others]);
  }
  std::vector<std::int64_t> out;
  for (const std::int64_t trial : trials) {
    if (chosen.count(trial) > 0) out.push_back(trial);
  }
  return out;
}

Targets::Prefix Targets::prefix() {
  Prefix out;
  out.count = static_cast<std::int64_t>(ended_.size());
  out.trials = select(ended_, kMostModelled);
  out.fitted = select(out.trials, kMostFitted);
  out.valued = valued(out.fitted);
  out.targets = values(out.valued);
  out.infeasibility = infeasibility(out.fitted);
  return out;
}

}  // namespace fettle::search::gp
