// Time is the union of the runs' intervals, GPU-hours their sum.
#include "core/spending.h"

#include <algorithm>
#include <utility>

#include "core/history.h"
#include "core/run_records.h"

namespace fettle::core {

using api::RunRecord;
using api::TrialPtr;

namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;  // from, to; milliseconds

void add_intervals(const api::Trial& trial, std::int64_t now_ms, std::vector<Interval>& intervals) {
  const std::vector<RunRecord>& runs = trial.status.runs;
  if (runs.empty()) return;
  const RunRecord& oldest = runs.front();
  const double pruned_seconds = oldest.earlier_seconds / static_cast<double>(oldest.workers);
  if (pruned_seconds > 0) {
    const auto length = static_cast<std::int64_t>(pruned_seconds * 1000);
    intervals.emplace_back(oldest.started_ms - length, oldest.started_ms);
  }
  for (const RunRecord& run : runs) {
    if (run.running_ms == 0) continue;
    intervals.emplace_back(run.running_ms, run.outcome ? run.ended_ms : now_ms);
  }
}

double length_of_union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::int64_t total_ms = 0;
  std::int64_t covered_to = 0;
  for (const auto& [from, to] : intervals) {
    const std::int64_t start = std::max(from, covered_to);
    if (to <= start) continue;
    total_ms += to - start;
    covered_to = to;
  }
  return static_cast<double>(total_ms) / 1000.0;
}

// A request for GPU memory counts as a whole GPU: what share it is depends on the card.
double gpus_per_worker(const api::TrialTemplate& trial) {
  if (!trial.gpu) return 0;
  if (trial.gpu->fraction) return *trial.gpu->fraction;
  return trial.gpu->count ? static_cast<double>(*trial.gpu->count) : 1;
}

double seconds_of(const api::Trial& trial, std::int64_t now_ms) {
  const std::vector<RunRecord>& runs = trial.status.runs;
  if (runs.empty()) return 0;
  return runs.back().earlier_seconds + worker_seconds(runs.back(), now_ms);
}

bool runs_now(const api::Trial& trial) {
  const std::vector<RunRecord>& runs = trial.status.runs;
  return !runs.empty() && !runs.back().outcome && runs.back().running_ms > 0;
}

// What a second of a worker counts as: its GPUs, or itself.
double price_of_second(const api::TrialTemplate& trial) {
  const double gpus = gpus_per_worker(trial);
  return gpus > 0 ? gpus : 1;
}

}  // namespace

double cost_of(const api::Study& study, const api::Trial& trial, std::int64_t now_ms) {
  return seconds_of(trial, now_ms) * price_of_second(study.spec.trial);
}

std::optional<double> max_cost_of(const api::StudySpec& spec) {
  std::optional<double> out;
  if (spec.budget.gpu_hours && spec.trial.gpu) out = *spec.budget.gpu_hours * 3600;
  if (!spec.budget.wall_time) return out;
  const auto workers = static_cast<double>(spec.budget.parallelism * spec.trial.workers.max);
  const double all_the_time = *spec.budget.wall_time * workers * price_of_second(spec.trial);
  return std::min(all_the_time, out.value_or(all_the_time));
}

Spending spending_of(const api::Study& study, const std::vector<TrialPtr>& trials,
                     std::int64_t now_ms) {
  Spending spending;
  std::vector<Interval> intervals;
  double seconds = 0;
  const double gpus = gpus_per_worker(study.spec.trial);
  for (const TrialPtr& trial : trials) {
    add_intervals(*trial, now_ms, intervals);
    seconds += seconds_of(*trial, now_ms);
    if (!runs_now(*trial)) continue;
    spending.running = true;
    spending.gpus_in_use += gpus * static_cast<double>(trial->status.runs.back().workers);
  }
  spending.active_seconds = length_of_union(std::move(intervals));
  spending.gpu_hours = seconds * gpus / 3600.0;
  return spending;
}

std::optional<double> estimate_remaining(const api::Study& study,
                                         const std::vector<TrialPtr>& trials,
                                         const Spending& spending, std::int64_t slots,
                                         std::int64_t now_ms) {
  double ended_seconds = 0;
  std::int64_t ended = 0;
  for (const TrialPtr& trial : trials) {
    if (!api::is_terminal(trial->status.phase)) continue;
    ended_seconds += seconds_of(*trial, now_ms);
    ++ended;
  }
  if (ended == 0) return std::nullopt;
  const double average = ended_seconds / static_cast<double>(ended);
  const api::Budget& budget = study.spec.budget;
  const std::int64_t created = next_index(trials, study.status.trials.created);
  double work = average * static_cast<double>(std::max<std::int64_t>(0, budget.trials - created));
  for (const TrialPtr& trial : trials) {
    if (api::is_terminal(trial->status.phase)) continue;
    work += std::max(0.0, average - seconds_of(*trial, now_ms));
  }
  double remaining = work / static_cast<double>(std::max<std::int64_t>(1, slots));
  if (budget.wall_time) {
    remaining = std::min(remaining, std::max(0.0, *budget.wall_time - spending.active_seconds));
  }
  return remaining;
}

}  // namespace fettle::core
