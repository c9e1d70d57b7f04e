#include "core/replay/lineage.h"

#include <algorithm>

#include "api/study/study_fields.h"
#include "core/facts/history.h"

namespace fettle::core {

using api::TrialPtr;

namespace {

constexpr const char* kReplayed = "-again";

std::vector<std::optional<double>> values_at(const api::Trial& trial, std::int64_t step) {
  for (const api::Fact& fact : trial.status.facts) {
    if (fact.step == step && fact.kind != api::FactKind::kFailed) return fact.values;
  }
  return {};
}

}  // namespace

std::vector<Leg> lineage_of(const std::vector<TrialPtr>& trials, const std::string& trial,
                            std::int64_t step) {
  std::vector<Leg> legs;  // newest first, until the reversal below
  const api::Trial* next = find_trial(trials, trial).get();
  // The bound ends the loop even if edited objects name each other as parents.
  while (next != nullptr && legs.size() < trials.size()) {
    const auto& parent = next->spec.parent;
    legs.push_back({next, parent ? parent->step : 0, step, values_at(*next, step)});
    if (!parent) break;
    step = parent->step;
    next = find_trial(trials, parent->trial).get();
  }
  std::ranges::reverse(legs);
  return legs;
}

api::Study replay_of(const api::Study& study, const std::vector<Leg>& legs) {
  api::Study out;
  // "<study>-again", with the Study's name cut if the whole would be too long.
  std::string name = study.metadata.name;
  const std::size_t room = api::kLongestStudyName - std::string_view(kReplayed).size();
  if (name.size() > room) name.resize(room);
  while (name.ends_with('-')) name.pop_back();
  out.metadata.name = name + kReplayed;
  // The one trial trains all legs to their end: whatever would choose, stop or repeat trials goes.
  out.spec = study.spec;
  out.spec.suspend = false;
  out.spec.warm_start.reset();
  out.spec.replicates.reset();
  out.spec.early_stopping.reset();
  out.spec.budget = {};
  out.spec.budget.trials = 1;
  out.spec.algorithm = {};
  out.spec.algorithm.name = api::AlgorithmKind::kSchedule;
  out.spec.algorithm.seed = study.spec.algorithm.seed;
  out.spec.resource.max = legs.empty() ? study.spec.resource.max : legs.back().until_step;
  out.spec.resource.min = std::min(out.spec.resource.min, out.spec.resource.max);
  for (const Leg& leg : legs) {
    out.spec.algorithm.legs.push_back(
        {leg.until_step, leg.trial->spec.parameters, leg.trial->spec.seed});
  }
  for (api::Objective& objective : out.spec.objectives) objective.goal.reset();
  return out;
}

}  // namespace fettle::core
