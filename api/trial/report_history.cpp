#include "api/trial/report_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace fettle::api {
namespace {

// Returns an upper bound on a metric's JSON: name, quotes, colon, comma and 24 digits.
std::size_t metric_bytes(const std::string& name) { return name.size() + 28; }

// Returns an upper bound on {"step":1,"metrics":{...}}.
std::size_t json_bytes(const HistoryPoint& point) {
  constexpr std::size_t kFrame = 40;
  std::size_t bytes = kFrame;
  for (const auto& [name, value] : point.metrics) bytes += metric_bytes(name);
  return bytes;
}

bool fits(const std::vector<HistoryPoint>& history, std::size_t most_bytes) {
  if (history.size() > kMaxHistoryPoints) return false;
  std::size_t bytes = 0;
  for (const HistoryPoint& point : history) bytes += json_bytes(point);
  return bytes <= most_bytes;
}

using Steps = std::vector<std::int64_t>;  // ascending

bool is_among(const Steps& steps, const HistoryPoint& point) {
  return std::ranges::binary_search(steps, point.step);
}

// Returns the steps with the best and the newest value of each objective.
Steps result_steps(const std::vector<HistoryPoint>& history,
                   const std::vector<Objective>& objectives) {
  Steps steps;
  for (const Objective& objective : objectives) {
    const double sign = objective.direction == Direction::kMaximize ? 1 : -1;
    double best = -std::numeric_limits<double>::infinity();
    std::optional<std::int64_t> best_step;
    std::optional<std::int64_t> newest_step;
    for (const HistoryPoint& point : history) {
      const auto found = point.metrics.find(objective.metric);
      if (found == point.metrics.end()) continue;
      newest_step = point.step;
      if (!std::isfinite(found->second) || sign * found->second <= best) continue;
      best = sign * found->second;  // of equal values the earliest
      best_step = point.step;
    }
    if (best_step) steps.push_back(*best_step);
    if (newest_step) steps.push_back(*newest_step);
  }
  std::ranges::sort(steps);
  return steps;
}

// Returns how far apart the neighbours of inner point i are, as a logarithmic ratio of steps.
// Shifted by one: a step may be 0.
double spread(const std::vector<HistoryPoint>& history, std::size_t i) {
  const double before = static_cast<double>(std::max<std::int64_t>(history[i - 1].step, 0)) + 1;
  const double after = static_cast<double>(std::max<std::int64_t>(history[i + 1].step, 0)) + 1;
  return std::log(after / before);
}

// Returns the index of the most dispensable point; requires two points. `results`: from
// result_steps().
std::size_t least_needed(const std::vector<HistoryPoint>& history, const Steps& rungs,
                         const Steps& results) {
  std::size_t least = 0;  // 0: none found, because the first point is no candidate yet
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i + 1 < history.size(); ++i) {
    if (is_among(rungs, history[i]) || is_among(results, history[i])) continue;
    const double apart = spread(history, i);
    if (apart >= smallest) continue;
    smallest = apart;
    least = i;
  }
  if (least > 0) return least;
  // Only rungs and results are left between the ends: now the first point and the rungs go, too,
  // the oldest first.
  for (std::size_t i = 0; i + 1 < history.size(); ++i) {
    if (!is_among(results, history[i])) return i;
  }
  return 0;  // all are results: the oldest
}

}  // namespace

std::size_t history_room(const Report& report) {
  constexpr std::size_t kReport = 4096;
  constexpr std::size_t kFrame = 240;  // everything else
  std::size_t taken =
      kFrame + report.checkpoint.size() + report.objective.size() + report.waiting.size();
  for (const auto& [name, value] : report.metrics) taken += metric_bytes(name);
  return taken < kReport ? kReport - taken : 0;
}

void thin_history(std::vector<HistoryPoint>& history, const CurveNeeds& needs,
                  std::size_t most_bytes) {
  if (fits(history, most_bytes)) return;
  const Steps results = result_steps(history, needs.objectives);
  while (history.size() > 1 && !fits(history, most_bytes)) {
    const std::size_t least = least_needed(history, needs.rungs, results);
    history.erase(history.begin() + static_cast<std::ptrdiff_t>(least));
  }
  if (!fits(history, most_bytes)) history.clear();  // the newest values are in the report itself
}

void add_history_point(std::vector<HistoryPoint>& history, HistoryPoint point,
                       const CurveNeeds& needs, std::size_t most_bytes) {
  while (!history.empty() && history.back().step > point.step) history.pop_back();
  if (!history.empty() && history.back().step == point.step) {
    for (const auto& [name, value] : point.metrics) history.back().metrics[name] = value;
  } else {
    history.push_back(std::move(point));
  }
  thin_history(history, needs, most_bytes);
}

}  // namespace fettle::api
