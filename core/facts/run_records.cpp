// See run_records.h for what a record takes over from the one before.
#include "core/facts/run_records.h"

#include <algorithm>

#include "api/fields/quantity.h"

namespace fettle::core {

using api::Outcome;
using api::RunRecord;

bool counts_against_retries(Outcome outcome) {
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
  if (newest.gpu_memory_short) return newest.failures;  // it gets more, and that is no failure
  return newest.failures + (newest.outcome && counts_against_retries(*newest.outcome) ? 1 : 0);
}

namespace {

// Whether the i-th record is of a disrupted run that reported no new step.
bool is_vain(const std::vector<RunRecord>& runs, std::size_t i, bool resumes) {
  const std::int64_t before = i == 0 || !resumes ? 0 : runs[i - 1].last_step;
  return runs[i].outcome == Outcome::kDisrupted && runs[i].last_step <= before;
}

}  // namespace

std::int64_t disruptions_without_progress(const api::TrialStatus& status, bool resumes) {
  std::int64_t count = 0;
  for (std::size_t i = status.runs.size(); i > 0; --i) {
    if (!is_vain(status.runs, i - 1, resumes)) break;
    if (status.runs[i - 1].reason != api::kPreempted) ++count;
  }
  return count;
}

std::int64_t presumed_without_progress(const api::TrialStatus& status) {
  std::int64_t count = 0;
  for (std::size_t i = status.runs.size(); i > 0; --i) {
    // Even where each run starts at the first step: a program that always exits at the same step
    // by itself gets nowhere.
    if (!is_vain(status.runs, i - 1, /*resumes=*/true) || status.runs[i - 1].reason != kPresumed)
      break;
    ++count;
  }
  return count;
}

void doubt_disruption(const api::TrialStatus& status, RunRecord& record) {
  record.reason = kPresumed;
  const std::int64_t row = presumed_without_progress(status);
  if (row <= kMaxPresumedDisruptions) return;
  record.outcome = Outcome::kFailed;
  record.reason.clear();  // kPresumed is a reason of disruptions only
  record.message += "; " + std::to_string(row) +
                    " runs in a row ended so without getting further, and nothing else says that "
                    "they were disrupted: does the program exit so by itself?";
}

// While the run is open, last_step is that of the trial when it was recorded (append_run).
std::int64_t last_step_of(const api::TrialStatus& status, const RunRecord& record, bool resumes) {
  if (!status.report) return 0;
  const api::Report& report = *status.report;
  const bool is_of_run = report.step != record.last_step || report.at_ms > record.started_ms;
  return resumes || is_of_run ? report.step : 0;
}

std::int64_t backoff_ms(std::int64_t n) {
  std::int64_t wait = kMinBackoffMs;
  for (std::int64_t i = 1; i < n && wait < kMaxBackoffMs; ++i) wait *= 2;
  return std::min(wait, kMaxBackoffMs);
}

namespace {

double seconds_of(std::int64_t workers, std::int64_t from_ms, std::int64_t to_ms) {
  const std::int64_t length_ms = std::max<std::int64_t>(0, to_ms - from_ms);
  return static_cast<double>(length_ms) / 1000.0 * static_cast<double>(workers);
}

}  // namespace

std::int64_t workers_now(const RunRecord& record) {
  return record.resizes.empty() ? record.workers : record.resizes.back().workers;
}

bool has_full_resizes(const RunRecord& record) { return record.resizes.size() == api::kMaxResizes; }

void set_workers(RunRecord& record, std::int64_t workers, std::int64_t now_ms) {
  if (workers == workers_now(record)) return;
  std::vector<api::Resize>& resizes = record.resizes;
  // A full list drops its oldest resize; earlier_seconds keeps the seconds up to the next one. The
  // push that fills the list also moves the time before the first resize there, because
  // worker_seconds() begins with the first resize of a full list.
  if (has_full_resizes(record)) {
    carry_seconds(record, seconds_of(resizes[0].workers, resizes[0].at_ms, resizes[1].at_ms));
    resizes.erase(resizes.begin());
    resizes.push_back({now_ms, workers});
    return;
  }
  resizes.push_back({now_ms, workers});
  if (!has_full_resizes(record)) return;
  carry_seconds(record, seconds_of(record.workers, record.running_ms, resizes[0].at_ms));
}

std::string describe_preemption(const RunRecord& record, const std::optional<api::Report>& report,
                                const std::string& unit, std::int64_t now_ms) {
  const double seconds = static_cast<double>(now_ms - record.running_ms) / 1000;
  return " ran for " + api::format_duration(seconds) + ", then its queue took its nodes back at " +
         unit + " " + std::to_string(report ? report->step : 0) +
         "; waiting to be admitted again is not charged";
}

void carry_seconds(RunRecord& record, double seconds) {
  if (record.gpus) {
    const double before = record.earlier_seconds * *record.gpus;
    record.earlier_gpu_seconds =
        record.earlier_gpu_seconds.value_or(before) + seconds * *record.gpus;
  }
  record.earlier_seconds += seconds;
}

std::optional<double> gpu_seconds(const RunRecord& record, std::int64_t now_ms) {
  if (!record.gpus) return record.earlier_gpu_seconds;
  const double earlier = record.earlier_gpu_seconds.value_or(record.earlier_seconds * *record.gpus);
  return earlier + worker_seconds(record, now_ms) * *record.gpus;
}

double worker_seconds(const RunRecord& record, std::int64_t now_ms) {
  if (record.running_ms == 0) return 0;
  double total = 0;
  std::int64_t from_ms = record.running_ms;
  // A full list has the time before its first resize in earlier_seconds (set_workers).
  std::int64_t workers = has_full_resizes(record) ? 0 : record.workers;
  for (const api::Resize& resize : record.resizes) {
    total += seconds_of(workers, from_ms, resize.at_ms);
    from_ms = std::max(from_ms, resize.at_ms);  // the clock of a later controller may be behind
    workers = resize.workers;
  }
  return total + seconds_of(workers, from_ms, record.outcome ? record.ended_ms : now_ms);
}

RunRecord& append_run(api::TrialStatus& status, const api::TrialSpec& spec, std::int64_t now_ms) {
  RunRecord next;
  if (!status.runs.empty()) {
    const RunRecord& previous = status.runs.back();
    next.run = previous.run + 1;
    next.earlier_seconds = previous.earlier_seconds + worker_seconds(previous, now_ms);
    next.earlier_gpu_seconds = gpu_seconds(previous, now_ms);
  }
  next.failures = failures_of(status);
  next.workers = spec.workers;
  next.gpu_memory = spec.gpu_memory;
  next.until_step = spec.until_step;
  next.started_ms = now_ms;
  next.last_step = status.report ? status.report->step : 0;  // for last_step_of()
  status.runs.push_back(next);
  if (status.runs.size() > kMaxRunRecords) status.runs.erase(status.runs.begin());
  return status.runs.back();
}

std::string truncate_message(const std::string& text) {
  if (text.size() <= kMaxMessageBytes) return text;
  static constexpr const char* kCut = "...";
  std::size_t from = text.size() - kMaxMessageBytes + 3;  // the length of kCut
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  return kCut + text.substr(from);
}

}  // namespace fettle::core
