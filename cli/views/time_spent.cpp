#include "cli/views/time_spent.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "api/trial/report.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"

namespace fettle::cli {
namespace {

constexpr double kNegligibleShare = 0.001;
// The search may leave a short gap without runs; a longer one means that fettle was not running.
constexpr std::int64_t kLongGapMs = 5'000;

struct Interval {
  std::int64_t begin_ms = 0;
  std::int64_t end_ms = 0;
};

double seconds(std::int64_t from_ms, std::int64_t to_ms) {
  return static_cast<double>(std::max<std::int64_t>(to_ms - from_ms, 0)) / 1000;
}

std::vector<Interval> run_intervals(const RunView& view) {
  std::vector<Interval> intervals;
  for (const api::TrialPtr& trial : view.trials) {
    for (const api::RunRecord& run : trial->status.runs) {
      if (run.started_ms == 0) continue;  // not started yet
      intervals.push_back({run.started_ms, run.ended_ms > 0 ? run.ended_ms : view.now_ms});
    }
  }
  return intervals;
}

// Returns when the wait after run `at` of the trial ended: its next run began, or the trial failed
// for good.
std::int64_t retry_end(const api::Trial& trial, std::size_t at, std::int64_t now_ms) {
  const std::vector<api::RunRecord>& runs = trial.status.runs;
  if (at + 1 < runs.size()) return runs[at + 1].started_ms;
  if (trial.status.phase == api::TrialPhase::kPending) return now_ms;  // still waits
  const api::Fact* end = core::newest_end(trial);
  return end == nullptr ? runs[at].ended_ms : std::max(end->at_ms, runs[at].ended_ms);
}

// A trial keeps its slot after a failed run.
std::vector<Interval> retry_intervals(const RunView& view) {
  std::vector<Interval> intervals;
  for (const api::TrialPtr& trial : view.trials) {
    const std::vector<api::RunRecord>& runs = trial->status.runs;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i].outcome || !core::counts_against_retries(*runs[i].outcome)) continue;
      intervals.push_back({runs[i].ended_ms, retry_end(*trial, i, view.now_ms)});
    }
  }
  return intervals;
}

double sum_of(const std::vector<Interval>& intervals) {
  double sum = 0;
  for (const Interval& interval : intervals) sum += seconds(interval.begin_ms, interval.end_ms);
  return sum;
}

// Returns the seconds of long gaps between the intervals and before `end_ms`.
double long_gaps(std::vector<Interval> intervals, std::int64_t end_ms) {
  std::ranges::sort(intervals, {}, &Interval::begin_ms);
  intervals.push_back({end_ms, end_ms});
  double sum = 0;
  std::int64_t covered_ms = intervals.front().begin_ms;  // at least the one at end_ms
  for (const Interval& interval : intervals) {
    if (interval.begin_ms - covered_ms >= kLongGapMs) sum += seconds(covered_ms, interval.begin_ms);
    covered_ms = std::max(covered_ms, interval.end_ms);
  }
  return sum;
}

// Returns the most intervals that overlap. An end and a begin at the same instant do not overlap.
std::int64_t most_at_once(const std::vector<Interval>& intervals) {
  std::vector<std::pair<std::int64_t, int>> edges;
  for (const Interval& interval : intervals) {
    if (interval.end_ms <= interval.begin_ms) continue;
    edges.emplace_back(interval.begin_ms, 1);
    edges.emplace_back(interval.end_ms, -1);
  }
  std::ranges::sort(edges);  // at one instant ends (-1) come before begins (+1)
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [at_ms, change] : edges) most = std::max(most, now += change);
  // Runs that took no measurable time had a slot, too.
  return std::max<std::int64_t>(most, intervals.empty() ? 0 : 1);
}

// Returns slot-seconds without a run after the last run began; at least 0, even if the records of
// an interrupted study contradict each other.
double idle_at_the_end(const std::vector<Interval>& intervals, std::int64_t slots) {
  std::int64_t last_begin = 0;
  std::int64_t last_end = 0;
  for (const Interval& interval : intervals) {
    last_begin = std::max(last_begin, interval.begin_ms);
    last_end = std::max(last_end, interval.end_ms);
  }
  double idle = static_cast<double>(slots) * seconds(last_begin, last_end);
  for (const Interval& interval : intervals) idle -= seconds(last_begin, interval.end_ms);
  return std::max(idle, 0.0);
}

// Returns the seconds within epochs, validation included, if every epoch's report states its own.
std::optional<double> epoch_seconds(const api::Trial& trial) {
  if (!trial.status.report) return std::nullopt;
  const std::vector<api::HistoryPoint> curve = api::curve_of(*trial.status.report);
  // Some epochs have no point of their own.
  if (std::ssize(curve) != trial.status.report->step) return std::nullopt;
  double sum = 0;
  for (const api::HistoryPoint& point : curve) {
    const auto found = point.metrics.find("seconds");
    if (found == point.metrics.end()) return std::nullopt;
    sum += found->second;
  }
  return sum;
}

void add_trial(TimeSpent& spent, const api::Trial& trial, std::int64_t now_ms) {
  double running = 0;
  for (const api::RunRecord& run : trial.status.runs) {
    const std::int64_t end_ms = run.ended_ms > 0 ? run.ended_ms : now_ms;
    // A run that never got to run has only waited.
    const std::int64_t running_ms = run.running_ms > 0 ? run.running_ms : end_ms;
    spent.waiting += seconds(run.started_ms, running_ms);
    running += seconds(running_ms, end_ms);
  }
  // Counts the first run alone, while its record exists: old records are pruned.
  if (const api::RunRecord* run = trial.status.runs.empty() ? nullptr : &trial.status.runs[0];
      run != nullptr && run->run == 0 && trial.metadata.created_ms > 0) {
    spent.queued += seconds(trial.metadata.created_ms, run->started_ms);
  }
  // If the epochs do not tell, all time of the runs counts as theirs, and none as start-up.
  const double in_epochs = std::min(epoch_seconds(trial).value_or(running), running);
  // The metric is a share of the time of steps (docs/trainer.md).
  const double data_wait =
      in_epochs * std::clamp(metric_of(trial, "data_wait").value_or(0), 0.0, 1.0);
  spent.start_up += running - in_epochs;
  spent.data_wait += data_wait;
  spent.training += in_epochs - data_wait;
}

}  // namespace

TimeSpent time_spent(const RunView& view) {
  TimeSpent spent;
  const std::vector<Interval> intervals = run_intervals(view);
  spent.slots = most_at_once(intervals);
  for (const api::TrialPtr& trial : view.trials) add_trial(spent, *trial, view.now_ms);
  const double slots = static_cast<double>(spent.slots);
  if (slots == 0) return spent;
  const api::StudyStatus& status = view.study.status;
  const std::int64_t end_ms = status.ended_ms > 0 ? status.ended_ms : view.now_ms;
  std::vector<Interval> held = retry_intervals(view);
  spent.retrying = sum_of(held);
  held.insert(held.end(), intervals.begin(), intervals.end());
  spent.nothing_ran = slots * long_gaps(held, end_ms);
  const double busy = spent.training + spent.data_wait + spent.waiting + spent.start_up +
                      spent.retrying + spent.nothing_ran;
  // Records of runs may begin before the status says so; the parts must not exceed the whole.
  spent.wall_seconds = std::max(seconds(status.started_ms, end_ms), busy / slots);
  const double idle = slots * spent.wall_seconds - busy;
  spent.no_trial_left = std::min(idle, idle_at_the_end(intervals, spent.slots));
  spent.bookkeeping = idle - spent.no_trial_left;
  return spent;
}

std::string render_time_spent(const TimeSpent& spent, const Style& style) {
  const double total = static_cast<double>(spent.slots) * spent.wall_seconds;
  if (total <= 0) return "";
  const std::pair<const char*, double> parts[] = {{"training", spent.training},
                                                  {"waiting for data", spent.data_wait},
                                                  {"waiting to start", spent.waiting},
                                                  {"start-up and saving", spent.start_up},
                                                  {"waiting to retry", spent.retrying},
                                                  {"search and bookkeeping", spent.bookkeeping},
                                                  {"interrupted or suspended", spent.nothing_ran},
                                                  {"no trial left to start", spent.no_trial_left}};
  std::vector<Line> rows;
  for (const auto& [name, value] : parts) {
    if (value / total < kNegligibleShare) continue;
    char share[16];
    std::snprintf(share, sizeof share, "%.1f%%", 100 * value / total);
    rows.push_back({{name}, {format_elapsed(value)}, {share}});
  }
  std::string text = "Where the time went: " + plural(spent.slots, "slot") + " for " +
                     format_elapsed(spent.wall_seconds) + '\n';
  std::vector<Line> lines = table({{""}, {"", true}, {"", true}}, rows);
  lines.erase(lines.begin());  // no header
  text += render_lines(lines, kAnyWidth, style);
  if (spent.queued >= 1) {
    text += "  Trials waited " + format_elapsed(spent.queued) + " in all for a slot.\n";
  }
  return text;
}

Json time_spent_json(const TimeSpent& spent) {
  return Json::object({{"slots", spent.slots},
                       {"wallSeconds", spent.wall_seconds},
                       {"trainingSeconds", spent.training},
                       {"dataWaitSeconds", spent.data_wait},
                       {"waitingSeconds", spent.waiting},
                       {"startUpSeconds", spent.start_up},
                       {"retryingSeconds", spent.retrying},
                       {"bookkeepingSeconds", spent.bookkeeping},
                       {"nothingRanSeconds", spent.nothing_ran},
                       {"noTrialLeftSeconds", spent.no_trial_left},
                       {"queuedSeconds", spent.queued}});
}

}  // namespace fettle::cli
