// The Pareto front is kept while walking over the trials once: O(trials x front).
#include "core/best.h"

#include <algorithm>
#include <iterator>

#include "api/field.h"
#include "core/history.h"
#include "search/pareto.h"

namespace fettle::core {

using api::BestTrial;
using api::Direction;
using api::Fact;
using api::FactKind;
using api::TrialPtr;

namespace {

// A trial with the fact that speaks for it.
struct Candidate {
  const api::Trial* trial;
  const Fact* fact;
  search::Losses losses;
};

// A value as something to be minimised.
double loss_of(const api::Objective& objective, double value) {
  return objective.direction == Direction::kMaximize ? -value : value;
}

bool is_usable(const api::StudySpec& spec, const Fact& fact) {
  return !fact.infeasible && fact.values.size() == spec.objectives.size() &&
         std::all_of(fact.values.begin(), fact.values.end(),
                     [](const std::optional<double>& value) { return value.has_value(); });
}

std::vector<Candidate> usable(const api::StudySpec& spec, const std::vector<TrialPtr>& trials,
                              FactKind kind) {
  std::vector<Candidate> out;
  for (const TrialPtr& trial : trials) {
    const Fact* fact = newest_fact(*trial, kind);
    if (fact == nullptr || !is_usable(spec, *fact)) continue;
    Candidate candidate{trial.get(), fact, {}};
    for (std::size_t i = 0; i < spec.objectives.size(); ++i) {
      candidate.losses.push_back(loss_of(spec.objectives[i], *fact->values[i]));
    }
    out.push_back(std::move(candidate));
  }
  return out;
}

// Those that are compared: what reached its last step or, where nothing did, what was stopped.
std::vector<Candidate> candidates_of(const api::StudySpec& spec,
                                     const std::vector<TrialPtr>& trials) {
  std::vector<Candidate> results = usable(spec, trials, FactKind::kResult);
  return results.empty() ? usable(spec, trials, FactKind::kStopped) : results;
}

// Those that no other one dominates. One objective: the best value, possibly several times.
std::vector<Candidate> front_of(const std::vector<Candidate>& candidates) {
  std::vector<Candidate> front;
  for (const Candidate& candidate : candidates) {
    const bool dominated = std::any_of(front.begin(), front.end(), [&](const Candidate& other) {
      return search::dominates(other.losses, candidate.losses);
    });
    if (dominated) continue;
    std::erase_if(
        front, [&](const Candidate& o) { return search::dominates(candidate.losses, o.losses); });
    front.push_back(candidate);
  }
  return front;
}

// The worst losses that count: the objectives' own or the worst that were seen.
search::Losses reference_of(const api::StudySpec& spec, const std::vector<Candidate>& candidates) {
  search::Losses reference = candidates.front().losses;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const api::Objective& objective = spec.objectives[i];
    for (const Candidate& c : candidates) reference[i] = std::max(reference[i], c.losses[i]);
    if (objective.reference) reference[i] = loss_of(objective, *objective.reference);
  }
  return reference;
}

BestTrial describe(const Candidate& candidate) {
  BestTrial best;
  best.trial = candidate.trial->metadata.name;
  best.step = candidate.fact->step;
  best.parameters = candidate.trial->spec.parameters;
  for (const std::optional<double>& value : candidate.fact->values) {
    best.objectives.push_back(*value);
  }
  return best;
}

}  // namespace

bool is_better(const api::Objective& objective, double a, double b) {
  return objective.direction == Direction::kMaximize ? a > b : a < b;
}

std::vector<BestTrial> best_trials(const api::Study& study, const std::vector<TrialPtr>& trials) {
  const api::StudySpec& spec = study.spec;
  if (spec.objectives.empty()) return {};
  std::vector<Candidate> front = front_of(candidates_of(spec, trials));
  std::stable_sort(front.begin(), front.end(), [](const Candidate& a, const Candidate& b) {
    return a.losses[0] < b.losses[0];
  });
  const std::size_t most = spec.objectives.size() == 1 ? 1 : kMaxFront;
  if (front.size() > most) front.resize(most);
  std::vector<BestTrial> best;
  std::transform(front.begin(), front.end(), std::back_inserter(best), describe);
  return best;
}

std::optional<double> front_hypervolume(const api::Study& study,
                                        const std::vector<TrialPtr>& trials) {
  const api::StudySpec& spec = study.spec;
  if (spec.objectives.size() < 2) return std::nullopt;
  const std::vector<Candidate> candidates = candidates_of(spec, trials);
  if (candidates.empty()) return std::nullopt;
  std::vector<search::Losses> losses;
  for (Candidate& candidate : front_of(candidates)) losses.push_back(std::move(candidate.losses));
  const auto volume = search::hypervolume(std::move(losses), reference_of(spec, candidates));
  return volume && *volume <= api::kLargestBound ? volume : std::nullopt;  // what a status may hold
}

std::vector<VolumePoint> hypervolume_over_time(const api::Study& study,
                                               const std::vector<TrialPtr>& trials) {
  const api::StudySpec& spec = study.spec;
  if (spec.objectives.size() < 2) return {};
  std::vector<Candidate> candidates = usable(spec, trials, FactKind::kResult);
  if (candidates.empty()) return {};
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.fact->seq < b.fact->seq; });
  const search::Losses reference = reference_of(spec, candidates);
  std::vector<VolumePoint> out;
  std::vector<search::Losses> front;
  const std::size_t stride = (candidates.size() + kMaxVolumes - 1) / kMaxVolumes;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const search::Losses& added = candidates[i].losses;
    const bool dominated = std::any_of(front.begin(), front.end(), [&](const auto& other) {
      return search::dominates(other, added);
    });
    if (!dominated) {
      std::erase_if(front, [&](const auto& other) { return search::dominates(added, other); });
      front.push_back(added);
    }
    const std::size_t left = candidates.size() - 1 - i;
    if (left % stride != 0) continue;
    const auto volume = search::hypervolume(front, reference);
    if (volume) out.push_back({static_cast<std::int64_t>(i) + 1, *volume});
  }
  return out;
}

bool reaches_goals(const api::StudySpec& spec, const std::vector<double>& objectives) {
  bool has_goal = false;
  for (std::size_t i = 0; i < spec.objectives.size(); ++i) {
    const api::Objective& objective = spec.objectives[i];
    if (!objective.goal) continue;
    has_goal = true;
    if (is_better(objective, *objective.goal, objectives[i])) return false;
  }
  return has_goal;
}

}  // namespace fettle::core
