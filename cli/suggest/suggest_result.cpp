#include "cli/suggest/suggest_result.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "api/fields/field.h"
#include "core/facts/measurement.h"

namespace fettle::cli {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// null, NaN and the infinities are no values: the trial is infeasible for that objective.
Result<double> read_value(const Json& json) {
  if (json.is_null()) return kNoValue;
  if (!json.is_number()) {
    return invalid("a value must be a number or null; found " + std::string(json.type_name()));
  }
  return std::isfinite(json.as_double()) ? json.as_double() : kNoValue;
}

// Absent or null: not known.
Result<std::optional<double>> read_cost(const Json& content) {
  const Json* json = content.find("cost");
  if (json == nullptr || json->is_null()) return std::optional<double>();
  const double cost = json->is_number() ? json->as_double() : -1;
  if (std::isfinite(cost) && cost >= 0) return std::optional(cost);
  const std::string found =  // JSON cannot express them
      std::isnan(cost) ? "NaN" : (std::isinf(cost) ? "Infinity" : json->dump());
  return invalid("cost must be a number of at least 0, in one unit for all trials; found " + found);
}

Status read_objectives(const api::StudySpec& spec, const Json& content, api::Report& out) {
  const std::size_t objectives = spec.objectives.size();
  const Json* one = content.find("value");
  const Json* several = content.find("values");
  if ((one != nullptr) == (several != nullptr)) {
    return invalid("give either value or, one an objective, values");
  }
  Json::Array list =
      several != nullptr && several->is_array() ? several->as_array() : Json::Array();
  if (one != nullptr) list = one->is_null() ? Json::Array(objectives) : Json::Array{*one};
  if (list.size() != objectives) {
    return invalid("there are " + std::to_string(objectives) +
                   " objectives, so values must be an array of as many; found " +
                   (several != nullptr ? several : one)->dump());
  }
  for (std::size_t i = 0; i < objectives; ++i) {
    FETTLE_ASSIGN(out.metrics[spec.objectives[i].metric], read_value(list[i]));
  }
  return success();
}

// Metrics of constraints, and others for people.
Status read_metrics(const Json& content, api::Report& out) {
  const Json* metrics = content.find("metrics");
  if (metrics == nullptr || metrics->is_null()) return success();
  if (!metrics->is_object()) {
    return invalid("metrics must be an object of numbers; found " + api::describe(*metrics));
  }
  for (const auto& [name, json] : metrics->as_object()) {
    const auto value = read_value(json);
    if (!value.ok()) return invalid("metrics." + name + ": " + value.error().message);
    if (!out.metrics.emplace(name, *value).second) {
      return invalid("metrics." + name + " is an objective: give it as value or values");
    }
  }
  return success();
}

}  // namespace

Result<ToldResult> read_result(const api::StudySpec& spec, const Json& content) {
  ToldResult out;
  out.report.step = spec.resource.max;
  FETTLE_TRY(read_objectives(spec, content, out.report));
  FETTLE_TRY(read_metrics(content, out.report));
  FETTLE_ASSIGN(out.cost, read_cost(content));
  return out;
}

bool has_value(const Json& content) {
  return content.find("value") != nullptr || content.find("values") != nullptr;
}

Status check_constrained(const api::StudySpec& spec, const ToldResult& result,
                         std::string_view verb) {
  const auto& metrics = result.report.metrics;
  const bool has_all = std::ranges::all_of(spec.objectives, [&](const api::Objective& objective) {
    return std::isfinite(metrics.at(objective.metric));
  });
  if (!has_all) return success();  // infeasible already
  for (const api::Constraint& constraint : spec.constraints) {
    if (metrics.contains(constraint.metric)) continue;
    return invalid(std::string(verb) + " needs " + constraint.metric +
                   " in metrics, because the study has a constraint on it");
  }
  return success();
}

api::Fact fact_of(const api::StudySpec& spec, const ToldResult& result, bool completed) {
  core::Measurement measured = core::measure_end(spec, result.report, completed);
  api::Fact fact;
  fact.step = result.report.step;
  fact.values = std::move(measured.values);
  fact.infeasible = measured.infeasible;
  fact.cost = result.cost;
  return fact;
}

}  // namespace fettle::cli
