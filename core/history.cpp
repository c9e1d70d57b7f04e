// Reading the trials of a Study as one history in seq order.
#include "core/history.h"

#include <algorithm>
#include <tuple>

#include "core/plan.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::TrialPtr;

std::int64_t highest_seq(const std::vector<TrialPtr>& trials) {
  std::int64_t highest = 0;
  for (const TrialPtr& trial : trials) {
    for (const Fact& fact : trial->status.facts) highest = std::max(highest, fact.seq);
  }
  return highest;
}

std::int64_t next_index(const std::vector<TrialPtr>& trials, std::int64_t created) {
  return trials.empty() ? created : std::max(created, trials.back()->spec.index + 1);
}

std::int64_t count_active(const std::vector<TrialPtr>& trials) {
  return std::count_if(trials.begin(), trials.end(), [](const TrialPtr& trial) {
    return !api::is_terminal(trial->status.phase);
  });
}

const Fact* newest_fact(const api::Trial& trial, FactKind kind) {
  const Fact* newest = nullptr;
  for (const Fact& fact : trial.status.facts) {
    if (fact.kind == kind && (newest == nullptr || fact.seq > newest->seq)) newest = &fact;
  }
  return newest;
}

search::Problem problem_of(const api::Study& study) {
  const api::StudySpec& spec = study.spec;
  return {.parameters = spec.parameters,
          .objectives = spec.objectives,
          .algorithm = spec.algorithm,
          .resource = spec.resource,
          .max_trials = spec.budget.trials,
          .parallelism = spec.budget.parallelism};
}

// A trial that was deleted by hand leaves a gap: it stays in the history as a failed one without
// parameters, so that trial i is at position i for the samplers. Facts of equal seq, which only two
// controllers at once can write, are ordered by trial.
search::History history_of(const api::Study& study, const std::vector<TrialPtr>& trials) {
  search::History history;
  const std::int64_t count = next_index(trials, study.status.trials.created);
  history.events.reserve(static_cast<std::size_t>(highest_seq(trials)));
  history.trials.assign(static_cast<std::size_t>(count), Json::object());
  std::vector<bool> present(history.trials.size(), false);
  for (const TrialPtr& trial : trials) {
    const auto at = static_cast<std::size_t>(trial->spec.index);
    history.trials[at] = trial->spec.parameters;
    present[at] = true;
    for (const Fact& fact : trial->status.facts) {
      history.events.push_back({trial->spec.index, fact});
    }
  }
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i]) continue;
    Fact deleted;
    deleted.kind = FactKind::kFailed;
    deleted.values.resize(study.spec.objectives.size());
    history.events.push_back({static_cast<std::int64_t>(i), deleted});
  }
  std::sort(history.events.begin(), history.events.end(),
            [](const search::Event& a, const search::Event& b) {
              return std::tie(a.fact.seq, a.trial) < std::tie(b.fact.seq, b.trial);
            });
  return history;
}

}  // namespace fettle::core
