// Curves are short (api/trial/report_history.h), so linear searches will do.
#include "core/facts/measurement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fettle::core {

using api::HistoryPoint;
using api::Report;
using Metrics = std::map<std::string, double>;

namespace {

// The value of the metric at or before `step`. `newest` (see measure()) takes precedence over the
// curve, which may be thinned.
std::optional<double> last_value(const std::vector<HistoryPoint>& curve, std::int64_t step,
                                 const Metrics& newest, const std::string& metric) {
  const auto known = newest.find(metric);
  if (known != newest.end()) return known->second;
  std::optional<double> value;
  for (const HistoryPoint& point : curve) {
    if (point.step > step) break;  // the curve ascends
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
    if (point.step > step) break;  // the curve ascends
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
Measurement measure(const api::StudySpec& spec, const std::vector<HistoryPoint>& curve,
                    std::int64_t step, const Metrics& newest) {
  Measurement measurement;
  for (const api::Objective& objective : spec.objectives) {
    // A curve keeps the best value of each objective when it is thinned
    // (api/trial/report_history.h), so only the last one needs `newest`.
    std::optional<double> value = objective.take == api::Take::kBest
                                      ? best_value(curve, step, objective)
                                      : last_value(curve, step, newest, objective.metric);
    if (value && !std::isfinite(*value)) value.reset();
    if (!value) measurement.infeasible = true;
    measurement.values.push_back(value);
  }
  return measurement;
}

// `needed`: a constraint whose metric is missing does not hold.
bool is_within(const api::StudySpec& spec, const std::vector<HistoryPoint>& curve,
               std::int64_t step, const Metrics& newest, bool needed) {
  return std::ranges::all_of(spec.constraints, [&](const auto& constraint) {
    const std::optional<double> value = last_value(curve, step, newest, constraint.metric);
    return value ? holds(constraint, *value) : !needed;
  });
}

}  // namespace

Measurement measure_at(const api::StudySpec& spec, const std::vector<HistoryPoint>& curve,
                       std::int64_t step) {
  Measurement measurement = measure(spec, curve, step, /*newest=*/{});
  measurement.infeasible |= !is_within(spec, curve, step, /*newest=*/{}, /*needed=*/false);
  return measurement;
}

Measurement measure_end(const api::StudySpec& spec, const Report& report, bool completed) {
  const std::vector<HistoryPoint> curve = curve_of(report);
  Measurement measurement = measure(spec, curve, report.step, report.metrics);
  measurement.infeasible |= !is_within(spec, curve, report.step, report.metrics, completed);
  return measurement;
}

Measurement measure_objectives(const api::StudySpec& spec, const Report& report) {
  return measure(spec, curve_of(report), report.step, report.metrics);
}

bool is_within_constraints(const api::StudySpec& spec, const Report& report) {
  return is_within(spec, curve_of(report), report.step, report.metrics, /*needed=*/false);
}

std::vector<std::string> missing_metrics(const api::StudySpec& spec, const Report& report) {
  const std::vector<std::string> seen = seen_metrics(report);
  std::vector<std::string> missing;
  for (const api::Objective& objective : spec.objectives) {
    if (!std::ranges::binary_search(seen, objective.metric)) {
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

std::string list_names(const std::vector<std::string>& names) {
  static constexpr std::size_t kMaxNames = 10;
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < kMaxNames; ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMaxNames)
    list += " and " + std::to_string(names.size() - kMaxNames) + " more";
  return list;
}

}  // namespace fettle::core
