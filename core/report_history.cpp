#include "core/report_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace fettle::core {
namespace {

// An upper bound of what one metric takes as JSON: name, quotes, colon, comma and the digits.
std::size_t metric_bytes(const std::string& name) { return name.size() + 24; }

// {"step":1,"metrics":{...}}, at most.
std::size_t json_bytes(const api::HistoryPoint& point) {
  constexpr std::size_t kFrame = 40;
  std::size_t bytes = kFrame;
  for (const auto& [name, value] : point.metrics) bytes += metric_bytes(name);
  return bytes;
}

bool fits(const std::vector<api::HistoryPoint>& history, std::size_t most_bytes) {
  if (history.size() > kMaxHistoryPoints) return false;
  std::size_t bytes = 0;
  for (const api::HistoryPoint& point : history) bytes += json_bytes(point);
  return bytes <= most_bytes;
}

bool is_rung(const api::HistoryPoint& point, const std::vector<std::int64_t>& rungs) {
  return std::binary_search(rungs.begin(), rungs.end(), point.step);
}

// How far apart the neighbours of inner point i are, as a ratio of steps. Shifted by one: a step
// may be 0.
double spread(const std::vector<api::HistoryPoint>& history, std::size_t i) {
  const double before = static_cast<double>(std::max<std::int64_t>(history[i - 1].step, 0)) + 1;
  const double after = static_cast<double>(std::max<std::int64_t>(history[i + 1].step, 0)) + 1;
  return std::log(after / before);
}

// The point that is missed least; history.size() > 1.
std::size_t least_needed(const std::vector<api::HistoryPoint>& history,
                         const std::vector<std::int64_t>& rungs) {
  std::size_t least = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i + 1 < history.size(); ++i) {
    if (is_rung(history[i], rungs)) continue;
    const double apart = spread(history, i);
    if (apart >= smallest) continue;
    smallest = apart;
    least = i;
  }
  return least;  // 0 when only rungs are left between the ends: then the oldest point goes
}

}  // namespace

std::size_t history_room(const api::Report& report) {
  constexpr std::size_t kReport = 4096;
  constexpr std::size_t kFrame = 192;  // everything but metrics, checkpoint and history
  std::size_t taken = kFrame + report.checkpoint.size();
  for (const auto& [name, value] : report.metrics) taken += metric_bytes(name);
  return taken < kReport ? kReport - taken : 0;
}

void thin_history(std::vector<api::HistoryPoint>& history, const std::vector<std::int64_t>& rungs,
                  std::size_t most_bytes) {
  while (history.size() > 1 && !fits(history, most_bytes)) {
    history.erase(history.begin() + static_cast<std::ptrdiff_t>(least_needed(history, rungs)));
  }
}

void add_history_point(std::vector<api::HistoryPoint>& history, api::HistoryPoint point,
                       const std::vector<std::int64_t>& rungs, std::size_t most_bytes) {
  while (!history.empty() && history.back().step > point.step) history.pop_back();
  if (!history.empty() && history.back().step == point.step) {
    for (const auto& [name, value] : point.metrics) history.back().metrics[name] = value;
  } else {
    history.push_back(std::move(point));
  }
  thin_history(history, rungs, most_bytes);
}

}  // namespace fettle::core
