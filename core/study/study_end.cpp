// The order of the checks matters: a reached goal outweighs failures and spending.
#include "core/study/study_end.h"

#include <algorithm>

#include "api/fields/quantity.h"
#include "core/conditions.h"
#include "core/facts/history.h"
#include "search/rungs/promotion.h"

namespace fettle::core {

namespace {

std::optional<StudyEnd> goal_reached(const api::Study& study, const Ledger& ledger) {
  if (ledger.reaching_goals().empty()) return std::nullopt;
  const api::Trial& trial = *ledger.trials()[*ledger.reaching_goals().begin()];
  // reaches_goals() (best.h) has seen that there is a result, with a value of each objective.
  const api::Fact& result = *newest_fact(trial, api::FactKind::kResult);
  std::string values;  // of the objectives that have a goal: "loss 0.2, latency 9"
  for (std::size_t i = 0; i < study.spec.objectives.size(); ++i) {
    const api::Objective& objective = study.spec.objectives[i];
    if (!objective.goal) continue;
    values +=
        (values.empty() ? "" : ", ") + objective.metric + " " + Json(*result.values[i]).dump();
  }
  return StudyEnd{true, "GoalReached", trial.metadata.name + " reached the goal with " + values};
}

// The reason of the newest failure, as the end of a sentence.
std::string last_failure(const Ledger& ledger) {
  const api::Trial* newest = nullptr;
  std::int64_t at_ms = -1;
  for (const std::size_t position : ledger.failed()) {
    const api::Trial& trial = *ledger.trials()[position];
    if (trial.status.runs.empty() || trial.status.runs.back().ended_ms <= at_ms) continue;
    at_ms = trial.status.runs.back().ended_ms;
    newest = &trial;
  }
  if (newest == nullptr) return "";
  const api::StatusCondition* failed = find_condition(newest->status.conditions, "Failed");
  return "; the last one, " + newest->metadata.name +
         (failed == nullptr ? "" : ": " + failed->message);
}

std::optional<StudyEnd> too_many_failures(const api::Study& study, const Ledger& ledger) {
  const auto failed = std::ssize(ledger.failed());
  if (failed <= study.spec.budget.failures) return std::nullopt;
  return StudyEnd{false, "TooManyFailures",
                  std::to_string(failed) + " trials failed, " +
                      std::to_string(study.spec.budget.failures) +
                      " are accepted (spec.budget.failures)" + last_failure(ledger)};
}

std::optional<StudyEnd> budget_spent(const api::Budget& budget, const Spending& spending) {
  if (budget.wall_time && spending.active_seconds >= *budget.wall_time) {
    return StudyEnd{true, "BudgetSpent",
                    "trials have run for " + api::format_duration(*budget.wall_time) +
                        " (spec.budget.wallTime)"};
  }
  if (budget.gpu_hours && spending.gpu_hours >= *budget.gpu_hours) {
    return StudyEnd{
        true, "BudgetSpent",
        Json(*budget.gpu_hours).dump() + " GPU-hours are used up (spec.budget.gpuHours)"};
  }
  return std::nullopt;
}

// "; no trial reported epoch 9 ...", or "" if one did.
std::string shortfall(const api::Study& study, const Ledger& ledger) {
  const api::Resource& resource = study.spec.resource;
  const api::Trial* furthest = nullptr;
  std::int64_t step = -1;
  // The facts about an end or a pause: each is at the last step that was reported by then.
  for (const api::TrialPtr& trial : ledger.trials()) {
    for (const api::Fact& fact : trial->status.facts) {
      if (fact.kind == api::FactKind::kRung || fact.step <= step) continue;
      furthest = trial.get();
      step = fact.step;
    }
  }
  if (furthest == nullptr || step >= resource.max) return "";
  return "; no trial reported " + resource.unit + " " + std::to_string(resource.max) +
         " (spec.resource.max), " + furthest->metadata.name + " came furthest with " +
         resource.unit + " " + std::to_string(step);
}

bool has_result(const Ledger& ledger) {
  return std::ranges::any_of(ledger.trials(), [](const auto& trial) {
    return newest_fact(*trial, api::FactKind::kResult) != nullptr;
  });
}

}  // namespace

std::optional<StudyEnd> current_end(const api::Study& study, const Ledger& ledger,
                                    const Spending& spending) {
  if (auto ending = goal_reached(study, ledger)) return ending;
  if (auto ending = too_many_failures(study, ledger)) return ending;
  return budget_spent(study.spec.budget, spending);
}

namespace {

// "all 20 trials", "the only trial"
std::string all_of(std::int64_t trials) {
  return trials == 1 ? "the only trial" : "all " + std::to_string(trials) + " trials";
}

// "all 20 trials and 15 replicates are done"
std::string all_done(const Ledger& ledger) {
  const std::int64_t replicates = ledger.replicates();
  const std::int64_t searched = std::ssize(ledger.trials()) - replicates;
  std::string text = all_of(searched);
  if (replicates > 0) {
    text += " and " + std::to_string(replicates) + (replicates == 1 ? " replicate" : " replicates");
  }
  return text + (searched + replicates == 1 ? " is done" : " are done");
}

}  // namespace

StudyEnd final_end(const api::Study& study, const Ledger& ledger,
                   const std::optional<StudyEnd>& cause, bool exhausted) {
  if (cause && !cause->success) return *cause;
  const auto count = std::ssize(ledger.trials());
  if (count > 0 && std::ssize(ledger.failed()) == count) {
    return {false, "AllTrialsFailed", all_of(count) + " failed" + last_failure(ledger)};
  }
  if (!ledger.has_best()) {
    const std::string why = cause ? cause->message + "; " : "";
    return {false, kNoResult, why + "no trial ended with finite objectives within all constraints"};
  }
  StudyEnd ending{true, "TrialsDone", all_done(ledger)};
  if (cause) {
    ending = *cause;
  } else if (exhausted) {
    ending.reason = "SpaceExhausted";
    ending.message =
        "every point of the space was tried: " + std::to_string(count - ledger.replicates()) +
        " trials";
  }
  ending.message += shortfall(study, ledger);
  // A cause ended the Study before its trials could come to the last step, so other results count.
  if (cause || !search::promotes(ledger.problem()) || has_result(ledger)) return ending;
  return {false, "NoneReachedEnd", ending.message};
}

}  // namespace fettle::core
