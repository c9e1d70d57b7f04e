// The Pareto front, kept while walking over the trials once: O(trials x front).
#include "core/best.h"

#include <algorithm>
#include <iterator>

#include "core/history.h"

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
  double value(std::size_t i) const { return *fact->values[i]; }
};

// At least as good everywhere and better somewhere.
bool dominates(const api::StudySpec& spec, const Candidate& a, const Candidate& b) {
  bool strictly = false;
  for (std::size_t i = 0; i < spec.objectives.size(); ++i) {
    if (is_better(spec.objectives[i], b.value(i), a.value(i))) return false;
    if (is_better(spec.objectives[i], a.value(i), b.value(i))) strictly = true;
  }
  return strictly;
}

bool is_usable(const api::StudySpec& spec, const Fact& fact) {
  return !fact.infeasible && fact.values.size() == spec.objectives.size() &&
         std::all_of(fact.values.begin(), fact.values.end(),
                     [](const std::optional<double>& value) { return value.has_value(); });
}

// The trials that no other one dominates. One objective: the best value, possibly several times.
std::vector<Candidate> front_of(const api::StudySpec& spec, const std::vector<TrialPtr>& trials,
                                FactKind kind) {
  std::vector<Candidate> front;
  for (const TrialPtr& trial : trials) {
    const Fact* fact = newest_fact(*trial, kind);
    if (fact == nullptr || !is_usable(spec, *fact)) continue;
    const Candidate candidate{trial.get(), fact};
    const bool dominated = std::any_of(front.begin(), front.end(), [&](const Candidate& other) {
      return dominates(spec, other, candidate);
    });
    if (dominated) continue;
    std::erase_if(front, [&](const Candidate& o) { return dominates(spec, candidate, o); });
    front.push_back(candidate);
  }
  return front;
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
  std::vector<Candidate> front = front_of(spec, trials, FactKind::kResult);
  if (front.empty()) front = front_of(spec, trials, FactKind::kStopped);
  std::stable_sort(front.begin(), front.end(), [&spec](const Candidate& a, const Candidate& b) {
    return is_better(spec.objectives[0], a.value(0), b.value(0));
  });
  const std::size_t most = spec.objectives.size() == 1 ? 1 : kMaxFront;
  if (front.size() > most) front.resize(most);
  std::vector<BestTrial> best;
  std::transform(front.begin(), front.end(), std::back_inserter(best), describe);
  return best;
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
