// The order of the checks matters: a goal that was reached counts more than what failed or was
// spent.
#include "core/ending.h"

#include <algorithm>

#include "api/quantity.h"
#include "core/best.h"
#include "core/conditions.h"
#include "core/history.h"

namespace fettle::core {

using api::TrialPhase;
using api::TrialPtr;

namespace {

std::optional<Ending> goal_reached(const api::Study& study, const std::vector<TrialPtr>& trials) {
  const api::StudySpec& spec = study.spec;
  for (const TrialPtr& trial : trials) {
    const api::Fact* result = newest_fact(*trial, api::FactKind::kResult);
    if (result == nullptr || result->infeasible) continue;
    std::vector<double> values;
    for (const std::optional<double>& value : result->values) {
      if (value) values.push_back(*value);
    }
    if (values.size() != spec.objectives.size() || !reaches_goals(spec, values)) continue;
    return Ending{true, "GoalReached",
                  trial->metadata.name + " reached the goal with " + spec.objectives[0].metric +
                      " " + Json(values[0]).dump()};
  }
  return std::nullopt;
}

// What the newest failed trial says of itself.
std::string last_failure(const std::vector<TrialPtr>& trials) {
  const api::Trial* newest = nullptr;
  std::int64_t at_ms = -1;
  for (const TrialPtr& trial : trials) {
    if (trial->status.phase != TrialPhase::kFailed || trial->status.runs.empty()) continue;
    if (trial->status.runs.back().ended_ms <= at_ms) continue;
    at_ms = trial->status.runs.back().ended_ms;
    newest = trial.get();
  }
  if (newest == nullptr) return "";
  const api::StatusCondition* failed = find_condition(newest->status.conditions, "Failed");
  return "; the last one, " + newest->metadata.name +
         (failed == nullptr ? "" : ": " + failed->message);
}

std::int64_t count_phase(const std::vector<TrialPtr>& trials, TrialPhase phase) {
  return std::count_if(trials.begin(), trials.end(),
                       [phase](const TrialPtr& trial) { return trial->status.phase == phase; });
}

std::optional<Ending> too_many_failures(const api::Study& study,
                                        const std::vector<TrialPtr>& trials) {
  const std::int64_t failed = count_phase(trials, TrialPhase::kFailed);
  if (failed <= study.spec.budget.failures) return std::nullopt;
  return Ending{false, "TooManyFailures",
                std::to_string(failed) + " trials failed, " +
                    std::to_string(study.spec.budget.failures) +
                    " are accepted (spec.budget.failures)" + last_failure(trials)};
}

std::optional<Ending> budget_spent(const api::Budget& budget, const Spending& spending) {
  if (budget.wall_time && spending.active_seconds >= *budget.wall_time) {
    return Ending{true, "BudgetSpent",
                  "trials have run for " + api::format_duration(*budget.wall_time) +
                      " (spec.budget.wallTime)"};
  }
  if (budget.gpu_hours && spending.gpu_hours >= *budget.gpu_hours) {
    return Ending{true, "BudgetSpent",
                  Json(*budget.gpu_hours).dump() + " GPU-hours are used up (spec.budget.gpuHours)"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Ending> ending_now(const api::Study& study, const std::vector<TrialPtr>& trials,
                                 const Spending& spending) {
  if (auto ending = goal_reached(study, trials)) return ending;
  if (auto ending = too_many_failures(study, trials)) return ending;
  return budget_spent(study.spec.budget, spending);
}

Ending final_ending(const api::Study& study, const std::vector<TrialPtr>& trials,
                    const std::optional<Ending>& cause, bool exhausted) {
  if (cause && !cause->success) return *cause;
  const auto count = static_cast<std::int64_t>(trials.size());
  if (count > 0 && count_phase(trials, TrialPhase::kFailed) == count) {
    const std::string who =
        count == 1 ? "the only trial" : "all " + std::to_string(count) + " trials";
    return {false, "AllTrialsFailed", who + " failed" + last_failure(trials)};
  }
  if (best_trials(study, trials).empty()) {
    const std::string why = cause ? cause->message + "; " : "";
    return {false, "NoResult",
            why + "no trial ended with finite objectives within all constraints"};
  }
  if (cause) return *cause;
  if (exhausted) {
    return {true, "SpaceExhausted",
            "every point of the space was tried: " + std::to_string(count) + " trials"};
  }
  return {true, "TrialsDone", "all " + std::to_string(count) + " trials are done"};
}

}  // namespace fettle::core
