#include "core/facts/late_reports.h"

#include <algorithm>
#include <span>
#include <string>

#include "api/trial/report.h"
#include "search/rungs/promotion.h"
#include "search/study_problem.h"

namespace fettle::core {
namespace {

// If the program reports late, the first trials show it.
constexpr std::size_t kMostTrials = 64;

// Whether trials pause at rungs and may lack a value there: a member of a population needs one.
bool pauses_without_value(const search::Problem& problem) {
  return search::promotes(problem) && !api::replaces_trials(problem.algorithm.name);
}

// The first step at which the trial reported `metric`. Facts do not show it: a rung that was passed
// without a value has the next value.
std::optional<std::int64_t> first_step_of(const api::Trial& trial, const std::string& metric) {
  if (!trial.status.report) return std::nullopt;
  for (const api::HistoryPoint& point : api::curve_of(*trial.status.report)) {
    if (point.metrics.contains(metric)) return point.step;
  }
  return std::nullopt;
}

}  // namespace

bool may_report_later(const api::Study& study, std::int64_t until_step) {
  const api::StudyStatus& status = study.status;
  const bool is_below = status.first_report ? until_step < *status.first_report
                                            : status.best.empty() && status.trials.failed == 0;
  if (!is_below || until_step >= study.spec.resource.max) return false;
  return pauses_without_value(search::problem_of(study));
}

std::optional<std::int64_t> first_late_report(const search::Problem& problem,
                                              const std::vector<api::TrialPtr>& trials) {
  if (!pauses_without_value(problem)) return std::nullopt;
  const std::int64_t first_rung = search::ladder_of(problem).front();
  std::optional<std::int64_t> first;
  for (const api::TrialPtr& trial : std::span(trials).first(std::min(trials.size(), kMostTrials))) {
    const auto step = first_step_of(*trial, problem.objectives.front().metric);
    if (step && *step <= first_rung) return std::nullopt;  // in time
    if (step) first = std::min(first.value_or(*step), *step);
  }
  return first;
}

}  // namespace fettle::core
