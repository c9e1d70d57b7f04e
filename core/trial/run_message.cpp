#include "core/trial/run_message.h"

#include "core/conditions.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"

namespace fettle::core {

bool update_message(api::RunRecord& record, const std::vector<api::RunRecord>& before,
                    const std::string& reason, std::int64_t now_ms) {
  record.message = truncate_message(reason);
  const bool is_known = !before.empty() && before.back().run == record.run;
  const std::string recorded = is_known ? before.back().message : "";
  // The first reason is news at once; the end of a reason is no news.
  if (recorded.empty() || record.message.empty()) return !record.message.empty();
  const bool is_due = (now_ms - record.started_ms) % kReasonPeriodMs < kReasonWindowMs;
  if (is_due && !same_reason(recorded, record.message)) return true;
  record.message = recorded;
  return false;
}

std::string describe_completion(const api::StudySpec& study, const api::TrialStatus& status,
                                const api::RunRecord& record) {
  const std::int64_t reached = reached_step(status, record.until_step);
  const std::string& unit = study.resource.unit;
  const std::string asked = unit + " " + std::to_string(record.until_step);
  if (reached >= record.until_step) {
    return counts_steps(study) ? "reached " + asked : "reported its result";
  }
  const std::string last = status.report
                               ? "its last report was of " + unit + " " + std::to_string(reached)
                               : "it has reported nothing yet";
  return "exited with 0; " + last + ", it was asked for " + asked;
}

}  // namespace fettle::core
