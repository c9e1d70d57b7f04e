// Reading the trials of a Study as one history in seq order.
#include "core/history.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

#include "core/plan.h"
#include "core/spending.h"
#include "search/schedule.h"
#include "search/study_problem.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::TrialPtr;

namespace {

// The index in the name of a trial of this Study, if it is one below `count`.
std::optional<std::int64_t> index_of(const std::string& study, const std::string& name,
                                     std::int64_t count) {
  const std::string_view prefix = study;
  if (name.size() <= prefix.size() + 1 || !name.starts_with(prefix)) return std::nullopt;
  std::int64_t index = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + prefix.size() + 1, end, index);
  const bool known = read.ec == std::errc() && read.ptr == end && index >= 0 && index < count;
  return known ? std::optional(index) : std::nullopt;
}

search::Stage stage_of(const api::Trial& trial, std::int64_t count) {
  const api::SearchOrigin& origin = trial.spec.search;
  search::Stage stage{.bracket = origin.bracket,
                      .rung = origin.rung,
                      .until_step = trial.spec.until_step,
                      .ended = trial.spec.stop.has_value()};
  stage.replaces = index_of(trial.spec.study, origin.replaces, count);
  if (!trial.spec.parent) return stage;
  const auto parent = index_of(trial.spec.study, trial.spec.parent->trial, count);
  if (parent) stage.parent = search::Origin{*parent, trial.spec.parent->step};
  return stage;
}

}  // namespace

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

std::int64_t completed_step(const api::Trial& trial) {
  return trial.status.runs.empty() ? trial.spec.until_step : trial.status.runs.back().until_step;
}

bool is_active(const api::Trial& trial) {
  const api::TrialPhase phase = trial.status.phase;
  if (!api::is_terminal(phase)) return true;
  return phase == api::TrialPhase::kCompleted && !trial.spec.stop &&
         trial.spec.until_step > completed_step(trial);
}

std::int64_t count_active(const std::vector<TrialPtr>& trials) {
  return std::count_if(trials.begin(), trials.end(),
                       [](const TrialPtr& trial) { return is_active(*trial); });
}

const Fact* newest_fact(const api::Trial& trial, FactKind kind) {
  const Fact* newest = nullptr;
  for (const Fact& fact : trial.status.facts) {
    if (fact.kind == kind && (newest == nullptr || fact.seq > newest->seq)) newest = &fact;
  }
  return newest;
}

search::Problem problem_of(const api::Study& study) {
  search::Problem out = search::problem_of(study.spec);
  out.priors = study.status.prior_observations;
  out.max_cost = max_cost_of(study.spec);
  return out;
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
  if (search::promotes(problem_of(study))) history.stages.resize(history.trials.size());
  for (const TrialPtr& trial : trials) {
    const auto at = static_cast<std::size_t>(trial->spec.index);
    history.trials[at] = trial->spec.parameters;
    present[at] = true;
    if (!history.stages.empty()) history.stages[at] = stage_of(*trial, count);
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
