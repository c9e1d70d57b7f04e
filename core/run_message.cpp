#include "core/run_message.h"

#include "core/conditions.h"
#include "core/run_records.h"

namespace fettle::core {

bool update_message(api::RunRecord& record, const std::vector<api::RunRecord>& before,
                    const std::string& reason, std::int64_t now_ms) {
  record.message = truncate_message(reason);
  const bool is_known = !before.empty() && before.back().run == record.run;
  const std::string recorded = is_known ? before.back().message : "";
  if (recorded.empty() || record.message.empty()) return !record.message.empty();
  const bool is_due = (now_ms - record.started_ms) % kReasonPeriodMs < kReasonWindowMs;
  if (is_due && !same_reason(recorded, record.message)) return true;
  record.message = recorded;
  return false;
}

}  // namespace fettle::core
