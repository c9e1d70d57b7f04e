#include "core/meeting.h"

namespace fettle::core {
namespace {

// By its time, or, since the reporter's clock may be wrong, by a step that no earlier run reached.
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
  if (has_reported(status)) return {kWorkersMissing, status.report->waiting};
  const std::int64_t told_ms = status.runs.back().running_ms + kFirstReportMs;
  if (now_ms < told_ms) return {.reason = "", .words = "", .wake_at_ms = told_ms};
  return {kNoReport, "its " + std::to_string(run.running_workers.value_or(run.workers)) +
                         " workers run, and nothing was reported yet: they train their first step, "
                         "or cannot reach each other"};
}

}  // namespace fettle::core
