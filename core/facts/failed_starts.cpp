#include "core/facts/failed_starts.h"

#include <algorithm>
#include <span>

#include "core/conditions.h"

namespace fettle::core {

using api::RunRecord;

namespace {

// With more trials than this, the first have reported long ago.
constexpr std::size_t kMostTrials = 64;

bool failed_at_start(const api::TrialStatus& status, const RunRecord& record) {
  return !status.report && record.outcome == api::Outcome::kFailed && record.running_ms != 0 &&
         record.ended_ms - record.running_ms <= kStartMs;
}

}  // namespace

std::optional<std::string> common_failed_start(const std::vector<api::TrialPtr>& trials) {
  const auto first = std::span(trials).first(std::min(trials.size(), kMostTrials));
  if (std::ranges::any_of(first,
                          [](const auto& trial) { return trial->status.report.has_value(); })) {
    return std::nullopt;
  }
  std::vector<std::string> seen;
  for (const api::TrialPtr& trial : first) {
    for (const RunRecord& record : trial->status.runs) {
      if (!failed_at_start(trial->status, record)) continue;
      const auto same = [&](const std::string& one) { return same_reason(one, record.message); };
      if (std::ranges::any_of(seen, same)) return record.message;  // the second run
      seen.push_back(record.message);
    }
  }
  return std::nullopt;
}

bool failed_as_others(const api::StudyStatus& study, const api::TrialStatus& status) {
  if (status.runs.empty() || !failed_at_start(status, status.runs.back())) return false;
  const api::StatusCondition* const known = find_condition(study.conditions, kFailsAtStart);
  return known != nullptr && known->status &&
         same_reason(known->message, status.runs.back().message);
}

}  // namespace fettle::core
