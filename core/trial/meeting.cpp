#include "core/trial/meeting.h"

#include <utility>

#include "core/conditions.h"

namespace fettle::core {
namespace {

// Compares times and, because the reporter's clock may be wrong, steps: a step that no earlier run
// reached was reported by this run.
bool has_reported(const api::TrialStatus& status) {
  if (!status.report || status.runs.empty()) return false;
  const std::size_t count = status.runs.size();
  const std::int64_t before = count > 1 ? status.runs[count - 2].last_step : 0;
  return status.report->at_ms >= status.runs.back().running_ms || status.report->step > before;
}

}  // namespace

bool may_lack_workers(const api::TrialStatus& status, const Run& run) {
  if (run.workers < 2) return false;
  return !has_reported(status) || !status.report->waiting.empty();
}

Meeting meeting_of(const api::TrialStatus& status, const Run& run, std::int64_t now_ms) {
  if (run.state != RunState::kRunning || !may_lack_workers(status, run)) return {};
  // Then its newest report says that it waits for workers (may_lack_workers).
  if (has_reported(status)) return {kWorkersMissing, status.report->waiting};
  const std::int64_t told_ms = status.runs.back().running_ms + kFirstReportMs;
  if (now_ms < told_ms) return {.reason = "", .words = "", .wake_at_ms = told_ms};
  return {kNoReport, "its " + std::to_string(run.running_workers.value_or(run.workers)) +
                         " workers run, and nothing was reported yet: they train their first step, "
                         "or cannot reach each other"};
}

bool set_meeting(const Meeting& meeting, const std::vector<api::StatusCondition>& before,
                 std::int64_t now_ms, std::vector<api::StatusCondition>& conditions) {
  if (meeting.words.empty()) return false;
  const api::StatusCondition* known = find_condition(before, "Waiting");
  const bool is_known = known != nullptr && known->status && known->reason == meeting.reason &&
                        known->message == meeting.words;
  api::StatusCondition waiting{
      .type = "Waiting", .status = true, .reason = meeting.reason, .message = meeting.words};
  // report_waiting() (trial_plan.cpp) has just set it to false, which would move its time.
  set_condition(conditions, std::move(waiting), is_known ? known->since_ms : now_ms);
  return !is_known;
}

std::int64_t meeting_time_ms(const api::TrialStatus& status, const Run& run) {
  const bool meets = status.report && !status.report->waiting.empty();
  return meets && may_lack_workers(status, run) ? kMeetingMs : 0;
}

}  // namespace fettle::core
