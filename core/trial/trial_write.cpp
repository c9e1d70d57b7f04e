#include "core/trial/trial_write.h"

#include <algorithm>
#include <tuple>

#include "api/trial/report.h"
#include "search/study_problem.h"

namespace fettle::core {
namespace {

// A first run is recorded as running after this time. A shorter one costs one write instead of two.
constexpr std::int64_t kBriefRunMs = 200;
// The least time between two writes of reports that no decision waits for.
constexpr std::int64_t kReportIntervalMs = 1'000;

// When a first run that has just begun is recorded as running.
std::optional<std::int64_t> first_record_due(const StatusChange& change) {
  if (!change.before.runs.empty() || change.after.runs.size() != 1) return std::nullopt;
  const Run* const run = change.newest;
  const bool quiet = run != nullptr && run->state == RunState::kRunning && !change.acts &&
                     !change.after.report && change.before.conditions == change.after.conditions;
  if (!quiet || run->seen_ms == 0) return std::nullopt;  // 0: the record may not wait (plan.h)
  return run->seen_ms + kBriefRunMs;
}

// When a report that no decision waits for is written.
std::optional<std::int64_t> report_due(const StatusChange& change) {
  const auto [before, after] = std::tie(change.before, change.after);
  // Early stopping judges reports, so each is due at once; so is every other change of the status.
  const bool judged = search::problem_of(change.study).early_stopping.has_value();
  if (judged || before.runs.empty() || before.phase != after.phase || before.runs != after.runs ||
      before.conditions != after.conditions) {
    return std::nullopt;
  }
  const std::int64_t last_ms =
      std::max(before.runs.back().running_ms, before.report ? before.report->at_ms : 0);
  return last_ms + kReportIntervalMs;
}

}  // namespace

bool take_report(const api::Study& study, const api::Report& newest, api::TrialStatus& status) {
  const api::CurveNeeds needs{search::rung_steps(study), study.spec.objectives};
  api::Report joined = api::join_reports(status.report, newest, needs);
  const bool is_news = !status.report || !api::same_report(*status.report, joined);
  if (is_news) status.report = std::move(joined);
  return is_news;
}

void drop_idle_first_run(const api::TrialStatus& before, api::TrialStatus& after) {
  if (!before.runs.empty() || after.runs.size() != 1) return;
  const api::RunRecord& first = after.runs.front();
  const bool silent =
      first.running_ms == 0 && !first.stopping && first.message.empty() && first.unplaced_ms == 0;
  if (silent && !first.outcome) after.runs.clear();
}

bool is_changed(const StatusChange& change) {
  const auto [before, after] = std::tie(change.before, change.after);
  if (before.report.has_value() != after.report.has_value()) return true;
  if (before.report && !same_report(*before.report, *after.report)) return true;
  return before.phase != after.phase || before.runs != after.runs ||
         before.conditions != after.conditions;
}

std::optional<std::int64_t> deferred_until(const StatusChange& change, std::int64_t now_ms) {
  for (const auto due_ms : {first_record_due(change), report_due(change)}) {
    if (due_ms && now_ms < *due_ms) return due_ms;
  }
  return std::nullopt;
}

}  // namespace fettle::core
