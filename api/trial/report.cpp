// Curves are short (report_history.h), so every function here walks over the whole curve.
#include "api/trial/report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "api/trial/display.h"
#include "base/utf8.h"

namespace fettle::api {

namespace {

using Metrics = std::map<std::string, double>;

bool same_metrics(const Metrics& a, const Metrics& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    const bool same_value =
        x.second == y.second || (!std::isfinite(x.second) && !std::isfinite(y.second));
    return x.first == y.first && same_value;
  });
}

// Whether the run waits and has not trained yet: its step says nothing about the trial's.
bool has_only_waited(const Report& report) {
  return !report.waiting.empty() && report.metrics.empty() && report.history.empty() &&
         report.step == 0;
}

// Sets the texts for the columns of kubectl get, from the newest values.
void set_column_texts(Report& report, const std::vector<Objective>& objectives) {
  report.objective = objective_text(objectives, report.metrics);
  report.throughput = throughput_text(report.metrics);
}

}  // namespace

void add_line(Report& report, ReportLine line, const CurveNeeds& needs, std::int64_t now_ms) {
  report.waiting = utf8_excerpt(line.waiting, kLongestWaiting);
  if (!report.waiting.empty()) {
    // The text takes room from the curve: a report has at most 4 KiB.
    thin_history(report.history, needs, history_room(report));
    report.at_ms = now_ms;
    return;
  }
  // The final result stays: a later line at the same step, such as an evaluation of other data,
  // adds metrics that were not reported yet and replaces none.
  if (report.final_result && line.step <= report.step) {
    line.step = report.step;
    std::erase_if(line.metrics,
                  [&](const auto& metric) { return report.metrics.count(metric.first) > 0; });
  }
  report.step = line.step;
  std::erase_if(line.metrics,
                [](const auto& metric) { return metric.first.size() > kLongestMetricName; });
  // In the output of other programs, MetricLines::keep_room_for() has kept room for the Study's
  // metrics.
  while (line.metrics.size() > kMaxReportMetrics) line.metrics.erase(std::prev(line.metrics.end()));
  for (const auto& [name, value] : line.metrics) {
    if (report.metrics.size() < kMaxReportMetrics || report.metrics.count(name) > 0) {
      report.metrics[name] = value;
    }
  }
  if (!line.metrics.empty()) {
    add_history_point(report.history, {line.step, std::move(line.metrics)}, needs,
                      history_room(report));
  }
  if (!line.checkpoint.empty() && line.checkpoint.size() <= kLongestCheckpointName) {
    report.checkpoint = std::move(line.checkpoint);
    report.checkpoint_step = line.checkpoint_step;
  }
  if (line.final_result) report.final_result = true;
  set_column_texts(report, needs.objectives);
  report.at_ms = now_ms;
}

Report join_reports(const std::optional<Report>& earlier, const Report& newer,
                    const CurveNeeds& needs) {
  if (earlier && has_only_waited(newer)) {
    Report joined = *earlier;
    joined.waiting = newer.waiting;
    joined.at_ms = newer.at_ms;
    thin_history(joined.history, needs, history_room(joined));
    return joined;
  }
  Report joined = newer;
  joined.history = curve_of(newer);
  if (earlier) {
    // `newer` is right from its first point on; without points, the earlier points up to its step
    // are kept.
    const std::int64_t first =
        joined.history.empty() ? newer.step + 1 : joined.history.front().step;
    std::vector<HistoryPoint> points;
    for (const HistoryPoint& point : curve_of(*earlier)) {
      if (point.step < first) points.push_back(point);
    }
    joined.history.insert(joined.history.begin(), points.begin(), points.end());
    if (joined.checkpoint.empty()) {
      joined.checkpoint = earlier->checkpoint;
      joined.checkpoint_step = earlier->checkpoint_step;
    }
  }
  thin_history(joined.history, needs, history_room(joined));
  set_column_texts(joined, needs.objectives);
  return joined;
}

Status check_history_values(const Report& report) {
  std::size_t values = 0;
  for (const HistoryPoint& point : report.history) values += point.metrics.size();
  if (values <= kMaxHistoryValues) return success();
  return invalid("status.report.history: found " + std::to_string(values) +
                 " values, expected at most " + std::to_string(kMaxHistoryValues));
}

std::vector<HistoryPoint> curve_of(const Report& report) {
  std::vector<HistoryPoint> curve = report.history;
  std::ranges::stable_sort(curve, {}, &HistoryPoint::step);
  if (report.metrics.empty()) return curve;
  if (curve.empty() || curve.back().step < report.step) {
    curve.push_back({report.step, report.metrics});
  }
  return curve;
}

bool same_report(const Report& a, const Report& b) {
  const auto same_point = [](const HistoryPoint& x, const HistoryPoint& y) {
    return x.step == y.step && same_metrics(x.metrics, y.metrics);
  };
  return a.step == b.step && a.checkpoint == b.checkpoint &&
         a.checkpoint_step == b.checkpoint_step && a.final_result == b.final_result &&
         a.at_ms == b.at_ms && a.waiting == b.waiting && same_metrics(a.metrics, b.metrics) &&
         std::ranges::equal(a.history, b.history, same_point);
}

}  // namespace fettle::api
