// RunRecords: the ledger of a trial's runs in Trial.status.
//
// At most kMaxRunRecords are kept. What is asked of the whole ledger (failures, seconds) is carried
// on from record to record, so the newest one answers for those that were pruned. Nothing is ever
// counted up: appending derives from the record before.
// Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "api/trial.h"

namespace fettle::core {

using api::kMaxRunRecords;
// Runs in a row that were disrupted without the trial getting any further: then it fails. Fewer
// than kMaxRunRecords, so that pruning hides none of them.
inline constexpr std::int64_t kMaxDisruptionsWithoutProgress = 10;
// Back-off before a retry: 1 s, 2 s, 4 s ... at most five minutes.
inline constexpr std::int64_t kMinBackoffMs = 1'000;
inline constexpr std::int64_t kMaxBackoffMs = 300'000;
// Longest message kept in a record or condition, bytes.
inline constexpr std::size_t kMaxMessageBytes = 1'024;

// Failed, TimedOut, Hung and OutOfMemory count against trial.retries.
bool counts_against_retries(api::Outcome outcome);

// Runs that failed by the trial's own fault, the newest included.
std::int64_t failures_of(const api::TrialStatus& status);

// Runs at the end of the ledger that were disrupted without progress, but for those by a queue.
std::int64_t disruptions_without_progress(const api::TrialStatus& status);

// How long to wait before run n + 1 after the n-th failure (or disruption) in a row; n >= 1.
std::int64_t backoff_ms(std::int64_t n);

// What runs is charged: a worker that waits for a node costs nothing, and neither does a gang that
// still gathers. Before a run has run, its record says how many workers it is to start with.
//
// How many workers of the run run now.
std::int64_t workers_now(const api::RunRecord& record);
// Writes down that from now on `workers` run, if that is news. Requires running_ms.
void set_workers(api::RunRecord& record, std::int64_t workers, std::int64_t now_ms);
// Seconds the run has been running, until `now_ms` if it still is; those of each worker. Of a run
// with kMaxResizes resizes what was before the oldest is in earlier_seconds.
double worker_seconds(const api::RunRecord& record, std::int64_t now_ms);
// Adds seconds of this run's workers to what earlier runs have cost.
void carry_seconds(api::RunRecord& record, double seconds);
// GPU-seconds of this run and all earlier ones, exact for parts of a GPU; absent where the record
// does not say how many GPUs a worker has.
std::optional<double> gpu_seconds(const api::RunRecord& record, std::int64_t now_ms);

// Appends the intent of the next run, with what it carries on, and prunes. Returns the record.
api::RunRecord& append_run(api::TrialStatus& status, const api::TrialSpec& spec,
                           std::int64_t now_ms);

// `text` cut to kMaxMessageBytes at a character boundary; the end is kept, where errors are.
std::string truncate_message(const std::string& text);

}  // namespace fettle::core
