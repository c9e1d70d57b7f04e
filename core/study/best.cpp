// A new trial is compared with the front alone. A trial that changes may have dominated any other:
// then the front is recomputed, O(trials x front). Only promoted trials change.
#include "core/study/best.h"

#include <algorithm>
#include <utility>

#include "api/fields/field.h"
#include "core/facts/history.h"
#include "core/facts/measurement.h"
#include "search/maths/pareto.h"

namespace fettle::core {

using api::BestTrial;
using api::Direction;
using api::Fact;
using api::FactKind;
using api::TrialPtr;

namespace {

// The value with its sign changed if it is maximised: smaller is better.
double loss_of(const api::Objective& objective, double value) {
  return objective.direction == Direction::kMaximize ? -value : value;
}

// The reference of each objective: its own or the worst value that was seen.
search::Losses reference_of(const api::StudySpec& spec, search::Losses worst) {
  for (std::size_t i = 0; i < worst.size(); ++i) {
    const api::Objective& objective = spec.objectives[i];
    if (objective.reference) worst[i] = loss_of(objective, *objective.reference);
  }
  return worst;
}

void worsen(search::Losses& worst, const search::Losses& losses) {
  if (worst.empty()) worst = losses;
  for (std::size_t i = 0; i < worst.size(); ++i) worst[i] = std::max(worst[i], losses[i]);
}

// Approximate size of the entry in a status.
std::size_t bytes_of(const BestTrial& best) {
  constexpr std::size_t kNumber = 24;
  constexpr std::size_t kKeys = 64;
  return best.trial.size() + best.parameters.dump().size() + kNumber * best.objectives.size() +
         kKeys;
}

}  // namespace

bool is_better(const api::Objective& objective, double a, double b) {
  return objective.direction == Direction::kMaximize ? a > b : a < b;
}

bool is_usable(const api::StudySpec& spec, const Fact& fact) {
  return !fact.infeasible && fact.values.size() == spec.objectives.size() &&
         std::ranges::all_of(fact.values,
                             [](const std::optional<double>& value) { return value.has_value(); });
}

std::optional<search::Losses> losses_of(const api::StudySpec& spec, const Fact& fact) {
  if (!is_usable(spec, fact) || spec.objectives.empty()) return std::nullopt;
  search::Losses losses;
  for (std::size_t i = 0; i < spec.objectives.size(); ++i) {
    losses.push_back(loss_of(spec.objectives[i], *fact.values[i]));
  }
  return losses;
}

std::optional<search::Losses> losses_of(const api::StudySpec& spec, const api::Trial& trial,
                                        FactKind kind) {
  const Fact* fact = newest_fact(trial, kind);
  if (fact == nullptr) return std::nullopt;
  const bool was_outside = kind == FactKind::kStopped && trial.status.report &&
                           !is_within_constraints(spec, *trial.status.report);
  return was_outside ? std::nullopt : losses_of(spec, *fact);
}

BestTrial best_entry(const api::Trial& trial, FactKind kind) {
  const Fact& fact = *newest_fact(trial, kind);
  BestTrial best;
  best.trial = trial.metadata.name;
  best.step = fact.step;
  // The values are of the newest report, which may be past the last step that was asked for.
  if (kind == FactKind::kResult && trial.status.report) {
    best.step = std::max(best.step, trial.status.report->step);
  }
  best.parameters = trial.spec.parameters;
  for (const std::optional<double>& value : fact.values) best.objectives.push_back(*value);
  return best;
}

void Front::set(std::size_t position, std::optional<search::Losses> losses, std::int64_t step) {
  if (position >= losses_.size()) {
    losses_.resize(position + 1);
    steps_.resize(position + 1);
  }
  search::Losses& known = losses_[position];
  search::Losses next = std::move(losses).value_or(search::Losses());  // empty: not compared
  // A higher step makes equal losses better (beats).
  if (known == next && (known.empty() || steps_[position] == step)) return;
  steps_[position] = step;
  const bool is_new = known.empty();
  if (!is_new) --count_;
  if (!next.empty()) ++count_;
  known = std::move(next);
  volume_.reset();
  // A new trial is added to the front now; a change leaves that to refresh() (top of this file).
  stale_ = stale_ || !is_new;
  if (!stale_) add(position);
}

// With one objective equal losses are a tie, which goes to the trial that was created first.
bool Front::beats(std::size_t a, std::size_t b) const {
  if (steps_[a] != steps_[b]) return steps_[a] > steps_[b];
  const bool is_tie = losses_[a].size() == 1 && losses_[a] == losses_[b];
  return is_tie ? a < b : search::dominates(losses_[a], losses_[b]);
}

void Front::add(std::size_t position) const {
  worsen(worst_, losses_[position]);
  const bool is_beaten =
      std::ranges::any_of(members_, [&](std::size_t member) { return beats(member, position); });
  if (is_beaten) return;
  std::erase_if(members_, [&](std::size_t member) { return beats(position, member); });
  members_.insert(position);
}

void Front::refresh() const {
  if (!stale_) return;
  stale_ = false;
  members_.clear();
  worst_.clear();
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    if (!losses_[i].empty()) add(i);
  }
}

const std::set<std::size_t>& Front::members() const {
  refresh();
  return members_;
}

std::optional<double> Front::hypervolume(const api::StudySpec& spec) const {
  if (spec.objectives.size() < 2 || empty()) return std::nullopt;
  refresh();
  if (!volume_) {
    std::vector<search::Losses> losses;
    for (const std::size_t member : members_) losses.push_back(losses_[member]);
    volume_ = search::hypervolume(std::move(losses), reference_of(spec, worst_));
    const bool fits = *volume_ && **volume_ <= api::kLargestBound;  // the limit of a status
    if (!fits) volume_.emplace(std::nullopt);                       // remembered as absent
  }
  return *volume_;
}

std::vector<BestTrial> best_trials(const api::StudySpec& spec, const Front& front,
                                   const std::vector<TrialPtr>& trials, FactKind kind) {
  std::vector<std::size_t> order(front.members().begin(), front.members().end());
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return front.losses(a)[0] < front.losses(b)[0]; });
  const std::size_t most = spec.objectives.size() == 1 ? 1 : kMaxFront;
  if (order.size() > most) order.resize(most);
  std::vector<BestTrial> best;
  std::size_t bytes = 0;
  for (const std::size_t position : order) {
    BestTrial next = best_entry(*trials[position], kind);
    bytes += bytes_of(next);
    if (!best.empty() && bytes > kMaxBestBytes) break;
    best.push_back(std::move(next));
  }
  return best;
}

std::vector<VolumePoint> hypervolume_over_time(const api::Study& study,
                                               const std::vector<TrialPtr>& trials) {
  const api::StudySpec& spec = study.spec;
  if (spec.objectives.size() < 2) return {};
  std::vector<std::pair<std::int64_t, search::Losses>> results;  // by seq
  search::Losses worst;
  for (const TrialPtr& trial : trials) {
    auto losses = losses_of(spec, *trial, FactKind::kResult);
    if (!losses) continue;
    worsen(worst, *losses);
    results.emplace_back(newest_fact(*trial, FactKind::kResult)->seq, *std::move(losses));
  }
  std::ranges::stable_sort(results, [](const auto& a, const auto& b) { return a.first < b.first; });
  const search::Losses reference = reference_of(spec, worst);
  std::vector<VolumePoint> out;
  std::vector<search::Losses> front;
  // A point for every `stride` results, rounded up so that there are at most kMaxVolumes.
  const std::size_t stride = (results.size() + kMaxVolumes - 1) / kMaxVolumes;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const search::Losses& added = results[i].second;
    const bool dominated = std::ranges::any_of(
        front, [&](const auto& other) { return search::dominates(other, added); });
    if (!dominated) {
      std::erase_if(front, [&](const auto& other) { return search::dominates(added, other); });
      front.push_back(added);
    }
    // Counted from the end, so that the last point is always there.
    const std::size_t left = results.size() - 1 - i;
    if (left % stride != 0) continue;
    const auto volume = search::hypervolume(front, reference);
    if (volume) out.push_back({static_cast<std::int64_t>(i) + 1, *volume});
  }
  return out;
}

bool reaches_goals(const api::StudySpec& spec, const api::Trial& trial) {
  const Fact* result = newest_fact(trial, FactKind::kResult);
  if (result == nullptr || !is_usable(spec, *result)) return false;
  bool has_goal = false;
  for (std::size_t i = 0; i < spec.objectives.size(); ++i) {
    const api::Objective& objective = spec.objectives[i];
    if (!objective.goal) continue;
    has_goal = true;
    // A value that equals the goal reaches it.
    if (is_better(objective, *objective.goal, *result->values[i])) return false;
  }
  return has_goal;
}

}  // namespace fettle::core
