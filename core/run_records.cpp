// What each record carries on from the one before, and what follows from the newest.
#include "core/run_records.h"

#include <algorithm>

namespace fettle::core {

using api::Outcome;
using api::RunRecord;

bool is_own_fault(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFailed:
    case Outcome::kTimedOut:
    case Outcome::kHung:
    case Outcome::kOutOfMemory:
      return true;
    case Outcome::kSucceeded:
    case Outcome::kDisrupted:
    case Outcome::kStopped:
      return false;
  }
  return false;
}

std::int64_t failures_of(const api::TrialStatus& status) {
  if (status.runs.empty()) return 0;
  const RunRecord& newest = status.runs.back();
  return newest.failures + (newest.outcome && is_own_fault(*newest.outcome) ? 1 : 0);
}

std::int64_t fruitless_disruptions(const api::TrialStatus& status) {
  std::int64_t count = 0;
  for (std::size_t i = status.runs.size(); i-- > 0;) {
    const RunRecord& record = status.runs[i];
    const std::int64_t before = i == 0 ? 0 : status.runs[i - 1].last_step;
    if (record.outcome != Outcome::kDisrupted || record.last_step > before) break;
    ++count;
  }
  return count;
}

std::int64_t backoff_ms(std::int64_t n) {
  std::int64_t wait = kBackoffFirstMs;
  for (std::int64_t i = 1; i < n && wait < kBackoffMostMs; ++i) wait *= 2;
  return std::min(wait, kBackoffMostMs);
}

double worker_seconds(const RunRecord& record, std::int64_t now_ms) {
  if (record.running_ms == 0) return 0;
  const std::int64_t end = record.outcome ? record.ended_ms : now_ms;
  const double seconds =
      static_cast<double>(std::max<std::int64_t>(0, end - record.running_ms)) / 1000.0;
  return seconds * static_cast<double>(record.workers);
}

RunRecord& append_run(api::TrialStatus& status, const api::TrialSpec& spec, std::int64_t now_ms) {
  RunRecord next;
  if (!status.runs.empty()) {
    const RunRecord& previous = status.runs.back();
    next.run = previous.run + 1;
    next.earlier_seconds = previous.earlier_seconds + worker_seconds(previous, now_ms);
  }
  next.failures = failures_of(status);
  next.workers = spec.workers;
  next.until_step = spec.until_step;
  next.started_ms = now_ms;
  next.last_step = status.report ? status.report->step : 0;
  status.runs.push_back(next);
  if (status.runs.size() > kMaxRunRecords) status.runs.erase(status.runs.begin());
  return status.runs.back();
}

std::string shorten(const std::string& text) {
  if (text.size() <= kMaxMessageBytes) return text;
  static constexpr const char* kCut = "...";
  std::size_t from = text.size() - kMaxMessageBytes + 3;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  return kCut + text.substr(from);
}

}  // namespace fettle::core
