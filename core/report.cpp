// Curves are short (report_history.h), so everything here walks over them plainly.
#include "core/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fettle::core {

using api::HistoryPoint;
using api::Report;
using Metrics = std::map<std::string, double>;

namespace {

bool same_metrics(const Metrics& a, const Metrics& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    const bool same_value =
        x.second == y.second || (!std::isfinite(x.second) && !std::isfinite(y.second));
    return x.first == y.first && same_value;
  });
}

std::optional<double> last_value(const std::vector<HistoryPoint>& curve, std::int64_t step,
                                 const Metrics& newest, const std::string& metric) {
  const auto known = newest.find(metric);
  if (known != newest.end()) return known->second;
  std::optional<double> value;
  for (const HistoryPoint& point : curve) {
    if (point.step > step) break;
    const auto found = point.metrics.find(metric);
    if (found != point.metrics.end()) value = found->second;
  }
  return value;
}

std::optional<double> best_value(const std::vector<HistoryPoint>& curve, std::int64_t step,
                                 const api::Objective& objective) {
  const double sign = objective.direction == api::Direction::kMaximize ? 1 : -1;
  std::optional<double> best;
  for (const HistoryPoint& point : curve) {
    if (point.step > step) break;
    const auto found = point.metrics.find(objective.metric);
    if (found == point.metrics.end() || !std::isfinite(found->second)) continue;
    if (!best || sign * found->second > sign * *best) best = found->second;
  }
  return best;
}

bool holds(const api::Constraint& constraint, double value) {
  return std::isfinite(value) && (!constraint.min || value >= *constraint.min) &&
         (!constraint.max || value <= *constraint.max);
}

// `newest`: values that are known to be the newest up to `step`.
Measured measure(const api::StudySpec& spec, const std::vector<HistoryPoint>& curve,
                 std::int64_t step, const Metrics& newest, bool constraints_needed) {
  Measured measured;
  for (const api::Objective& objective : spec.objectives) {
    std::optional<double> value = objective.take == api::Take::kBest
                                      ? best_value(curve, step, objective)
                                      : last_value(curve, step, newest, objective.metric);
    if (value && !std::isfinite(*value)) value.reset();
    if (!value) measured.infeasible = true;
    measured.values.push_back(value);
  }
  for (const api::Constraint& constraint : spec.constraints) {
    const std::optional<double> value = last_value(curve, step, newest, constraint.metric);
    if (value ? !holds(constraint, *value) : constraints_needed) measured.infeasible = true;
  }
  return measured;
}

}  // namespace

bool same_report(const Report& a, const Report& b) {
  const auto same_point = [](const HistoryPoint& x, const HistoryPoint& y) {
    return x.step == y.step && same_metrics(x.metrics, y.metrics);
  };
  return a.step == b.step && a.checkpoint == b.checkpoint &&
         a.checkpoint_step == b.checkpoint_step && a.final_result == b.final_result &&
         a.at_ms == b.at_ms && same_metrics(a.metrics, b.metrics) &&
         std::equal(a.history.begin(), a.history.end(), b.history.begin(), b.history.end(),
                    same_point);
}

Report join_reports(const std::optional<Report>& earlier, const Report& newer,
                    const CurveNeeds& needs) {
  Report joined = newer;
  joined.history = curve_of(newer);
  if (earlier) {
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
  return joined;
}

std::vector<HistoryPoint> curve_of(const Report& report) {
  std::vector<HistoryPoint> curve = report.history;
  std::stable_sort(curve.begin(), curve.end(),
                   [](const HistoryPoint& a, const HistoryPoint& b) { return a.step < b.step; });
  if (report.metrics.empty()) return curve;
  if (curve.empty() || curve.back().step < report.step) {
    curve.push_back({report.step, report.metrics});
  }
  return curve;
}

Measured measure_at(const api::StudySpec& spec, const std::vector<HistoryPoint>& curve,
                    std::int64_t step) {
  return measure(spec, curve, step, /*newest=*/{}, /*constraints_needed=*/false);
}

Measured measure_end(const api::StudySpec& spec, const Report& report, bool completed) {
  return measure(spec, curve_of(report), report.step, report.metrics, completed);
}

std::vector<std::string> missing_metrics(const api::StudySpec& spec, const Report& report) {
  const std::vector<std::string> seen = seen_metrics(report);
  std::vector<std::string> missing;
  for (const api::Objective& objective : spec.objectives) {
    if (!std::binary_search(seen.begin(), seen.end(), objective.metric)) {
      missing.push_back(objective.metric);
    }
  }
  return missing;
}

std::vector<std::string> seen_metrics(const Report& report) {
  std::set<std::string> names;
  for (const auto& [name, value] : report.metrics) names.insert(name);
  for (const HistoryPoint& point : report.history) {
    for (const auto& [name, value] : point.metrics) names.insert(name);
  }
  return {names.begin(), names.end()};
}

}  // namespace fettle::core
