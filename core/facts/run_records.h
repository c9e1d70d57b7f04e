// RunRecords: the records of a trial's runs in Trial.status.
//
// At most kMaxRunRecords are kept. Sums over all runs (failures, seconds) are copied from each
// record into the next, so the newest record includes the pruned runs. No counter is incremented: a
// new record is derived from the one before.
// Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "api/trial/trial.h"

namespace fettle::core {

using api::kMaxRunRecords;
// After this number of disrupted runs in a row without a new step the trial fails. Fewer than
// kMaxRunRecords, so that pruning hides none of them.
inline constexpr std::int64_t kMaxDisruptionsWithoutProgress = 10;
// The reason of a record that counts as disrupted by its exit code alone (Run::presumed), and how
// many such runs in a row without a new step are believed. The next one has failed.
inline constexpr const char* kPresumed = "Presumed";
inline constexpr std::int64_t kMaxPresumedDisruptions = 2;
// Back-off before a retry: 1 s, 2 s, 4 s ... at most five minutes.
inline constexpr std::int64_t kMinBackoffMs = 1'000;
inline constexpr std::int64_t kMaxBackoffMs = 300'000;
// Longest message kept in a record or condition, bytes.
inline constexpr std::size_t kMaxMessageBytes = 1'024;

// Failed, TimedOut, Hung and OutOfMemory count against trial.retries.
bool counts_against_retries(api::Outcome outcome);

// Runs that failed by the trial's own fault, the newest included.
std::int64_t failures_of(const api::TrialStatus& status);

// Disrupted runs without progress at the end of the list, except preemptions by a queue. Progress
// is a step that the trial had not reached before; if checkpoints do not outlive a run (`resumes`
// is false), a step of the run itself.
std::int64_t disruptions_without_progress(const api::TrialStatus& status, bool resumes = true);

// RunRecord::last_step of a run that ends now: the newest step of the trial; where checkpoints do
// not outlive a run, the newest step of this run, 0 if it reported none.
std::int64_t last_step_of(const api::TrialStatus& status, const api::RunRecord& record,
                          bool resumes);

// Disrupted runs without progress at the end of the list that are kPresumed.
std::int64_t presumed_without_progress(const api::TrialStatus& status);

// Marks the newest record of `status`, which is Disrupted by its exit code alone, as kPresumed.
// Makes it Failed if too many in a row have ended so: a program that always exits so, and gets
// nowhere, does it by itself.
void doubt_disruption(const api::TrialStatus& status, api::RunRecord& record);

// How long to wait before run n + 1 after the n-th failure (or disruption) in a row; n >= 1.
std::int64_t backoff_ms(std::int64_t n);

// Only running workers are charged: a worker that waits for a node costs nothing, and neither does
// a gang that is not complete. Until a run has run, its record has the workers it is to start with.
//
// How many of the run's workers run now.
std::int64_t workers_now(const api::RunRecord& record);
// Records that `workers` run from now on, if their number has changed. Requires running_ms.
void set_workers(api::RunRecord& record, std::int64_t workers, std::int64_t now_ms);
// Whether the list of resizes is full: then earlier_seconds has the beginning of this run, too.
bool has_full_resizes(const api::RunRecord& record);
// Seconds that the run's workers have run in all, until `now_ms` if it still runs. After
// kMaxResizes resizes, the time before the oldest resize that is kept is in earlier_seconds
// instead.
double worker_seconds(const api::RunRecord& record, std::int64_t now_ms);
// " ran for 5m, then its queue took its nodes back at epoch 22; ...". Requires running_ms.
std::string describe_preemption(const api::RunRecord& record,
                                const std::optional<api::Report>& report, const std::string& unit,
                                std::int64_t now_ms);
// Adds seconds of this run's workers to what earlier runs have cost.
void carry_seconds(api::RunRecord& record, double seconds);
// GPU-seconds of this run and all earlier runs, exact for parts of a GPU; absent if the record does
// not say how many GPUs a worker has.
std::optional<double> gpu_seconds(const api::RunRecord& record, std::int64_t now_ms);

// Appends the intent of the next run, with the sums carried over, and prunes. Returns the record.
api::RunRecord& append_run(api::TrialStatus& status, const api::TrialSpec& spec,
                           std::int64_t now_ms);

// `text` cut to kMaxMessageBytes at a character boundary; the end is kept, where errors are.
std::string truncate_message(const std::string& text);

}  // namespace fettle::core
