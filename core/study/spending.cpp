// Time is the union of the runs' intervals, GPU-hours their sum. Sums are in whole milliseconds, so
// that they do not depend on the order in which trials come and go.
#include "core/study/spending.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/facts/run_records.h"
#include "core/facts/trial_cost.h"

namespace fettle::core {

using api::RunRecord;
using api::TrialPtr;

namespace {

// How long `run` took to use the worker-seconds.
std::int64_t length_ms(double seconds, const RunRecord& run) {
  const auto workers = static_cast<double>(std::max<std::int64_t>(1, run.workers));
  return std::llround(1000 * seconds / workers);
}

// Time that is only known as a sum is placed by convention. Runs whose records were pruned count as
// one interval that ended right before the oldest run that is kept. The time of a run before its
// queue preempted it counts from the intent to start it.
void add_intervals(const api::Trial& trial, std::int64_t now_ms, std::vector<Interval>& intervals) {
  const RunRecord* previous = nullptr;
  for (const RunRecord& run : trial.status.runs) {
    const std::int64_t start = run.started_ms;
    if (previous == nullptr && run.run > 0) {
      intervals.emplace_back(start - length_ms(run.earlier_seconds, run), start);
    } else if (!has_full_resizes(run)) {
      // The excess of earlier_seconds over the earlier runs is this run's own. With a full list of
      // resizes it would include time from running_ms on, which the interval below covers. So the
      // time of such a run before a preemption is missing here, but not from the GPU-hours.
      const double of_others =
          previous == nullptr ? 0 : previous->earlier_seconds + worker_seconds(*previous, now_ms);
      intervals.emplace_back(start, start + length_ms(run.earlier_seconds - of_others, run));
    }
    if (run.running_ms != 0) {
      intervals.emplace_back(run.running_ms, run.outcome ? run.ended_ms : now_ms);
    }
    previous = &run;
  }
}

double as_seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000.0; }

bool runs_now(const api::Trial& trial) {
  const std::vector<RunRecord>& runs = trial.status.runs;
  return !runs.empty() && !runs.back().outcome && runs.back().running_ms > 0;
}

}  // namespace

std::optional<double> max_cost_of(const api::StudySpec& spec) {
  std::optional<double> out;
  if (spec.budget.gpu_hours && spec.trial.gpu) out = *spec.budget.gpu_hours * 3600;
  if (!spec.budget.wall_time) return out;
  const auto workers = static_cast<double>(spec.budget.parallelism * spec.trial.workers.max);
  const double all_the_time = *spec.budget.wall_time * workers * price_of_second(spec.trial);
  return std::min(all_the_time, out.value_or(all_the_time));
}

bool is_settled(const api::Trial& trial) {
  const std::vector<RunRecord>& runs = trial.status.runs;
  return runs.empty() || runs.back().outcome;
}

bool keeps_time(const api::Trial& before, const api::Trial& after) {
  std::vector<Interval> ended;
  add_intervals(before, /*now_ms=*/0, ended);
  std::vector<Interval> kept;
  add_intervals(after, /*now_ms=*/0, kept);
  return std::ranges::all_of(ended, [&](const Interval& interval) {
    const bool is_empty = interval.second <= interval.first;  // it still runs
    return is_empty || std::ranges::find(kept, interval) != kept.end();
  });
}

void SpendingTally::update(std::size_t position, const api::Trial* before,
                           const api::Trial& after) {
  const bool is_known = before != nullptr;
  // covered_ cannot give back the intervals of `before`, so all of them must be in `after`, too.
  is_stale_ = is_stale_ || (is_known && !keeps_time(*before, after));
  if (is_known && is_settled(*before)) count(*before, -1);
  if (is_settled(after)) {
    add(after);
    unsettled_.erase(position);
  } else {
    unsettled_.insert(position);
  }
}

void SpendingTally::refresh(const std::vector<TrialPtr>& trials) {
  if (!is_stale_) return;
  const std::set<std::size_t> unsettled = std::move(unsettled_);
  *this = SpendingTally();
  unsettled_ = unsettled;
  for (const TrialPtr& trial : trials) {
    if (is_settled(*trial)) add(*trial);
  }
}

void SpendingTally::add(const api::Trial& trial) {
  std::vector<Interval> intervals;
  add_intervals(trial, /*now_ms=*/0, intervals);
  for (const Interval& interval : intervals) covered_.add(interval);
  count(trial, 1);
}

void SpendingTally::count(const api::Trial& trial, std::int64_t sign) {
  const std::int64_t ms = sign * worker_ms(trial, /*now_ms=*/0);
  const std::optional<std::int64_t> of_gpus = gpu_ms(trial, /*now_ms=*/0);
  (of_gpus ? settled_gpu_ms_ : settled_ms_) += of_gpus ? sign * *of_gpus : ms;
  if (!api::is_terminal(trial.status.phase)) return;
  ended_ms_ += ms;
  ended_ += sign;
}

Spending SpendingTally::spending(const api::Study& study, const std::vector<TrialPtr>& trials,
                                 std::int64_t now_ms) const {
  Spending spending;
  std::vector<Interval> intervals;
  std::int64_t ms = settled_ms_;
  std::int64_t of_gpus_ms = settled_gpu_ms_;
  const double gpus = gpus_per_worker(study.spec.trial);
  for (const std::size_t position : unsettled_) {
    const api::Trial& trial = *trials[position];
    add_intervals(trial, now_ms, intervals);
    // Absent: the records do not say how many GPUs a worker has; then it has `gpus`.
    const std::optional<std::int64_t> of_gpus = gpu_ms(trial, now_ms);
    (of_gpus ? of_gpus_ms : ms) += of_gpus ? *of_gpus : worker_ms(trial, now_ms);
    if (!runs_now(trial)) continue;
    const RunRecord& run = trial.status.runs.back();
    spending.running = true;
    spending.gpus_in_use += run.gpus.value_or(gpus) * static_cast<double>(workers_now(run));
  }
  spending.active_seconds = as_seconds(covered_.length_with(intervals));
  spending.gpu_hours = (as_seconds(ms) * gpus + as_seconds(of_gpus_ms)) / 3600.0;
  return spending;
}

std::optional<double> SpendingTally::average_seconds(const std::vector<TrialPtr>& trials,
                                                     std::int64_t now_ms) const {
  std::int64_t ms = ended_ms_;
  std::int64_t ended = ended_;
  for (const std::size_t position : unsettled_) {
    const api::Trial& trial = *trials[position];
    if (!api::is_terminal(trial.status.phase)) continue;
    ms += worker_ms(trial, now_ms);
    ++ended;
  }
  if (ended == 0) return std::nullopt;
  return as_seconds(ms) / static_cast<double>(ended);
}

double seconds_left(const api::Trial& trial, double average, std::int64_t now_ms) {
  return std::max(0.0, average - seconds_of(trial, now_ms));
}

}  // namespace fettle::core
