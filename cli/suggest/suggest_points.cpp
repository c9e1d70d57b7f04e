#include "cli/suggest/suggest_points.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "api/fields/field.h"
#include "base/philox.h"
#include "search/space/space_map.h"

namespace fettle::cli {
namespace {

// Keeps the draws of parameters that a point leaves out apart from all others.
constexpr std::uint64_t kFillPurpose = 0x6669727374;  // "first"

bool is_choice(const api::Parameter& parameter, const Json& value) {
  if (parameter.type == api::ParameterType::kBoolean) return value.is_boolean();
  return std::ranges::find(parameter.values, value) != parameter.values.end();
}

// Describes the values of a parameter if `value` is none of them; "" if it is.
std::string expected_instead(const api::Parameter& parameter, const Json& value) {
  const bool is_numeric = parameter.type == api::ParameterType::kDouble ||
                          parameter.type == api::ParameterType::kInteger;
  if (!is_numeric && is_choice(parameter, value)) return "";
  if (parameter.type == api::ParameterType::kBoolean) return "true or false";
  if (!is_numeric) return "one of its choices";
  const double number = value.is_number() ? value.as_double() : std::nan("");
  if (number >= parameter.min && number <= parameter.max) return "";
  return "a number from " + api::describe(parameter.min) + " to " + api::describe(parameter.max);
}

// Why `point` is not of this space, as far as one parameter alone says so.
std::string why_outside(const std::vector<api::Parameter>& space, const Json& point) {
  if (!point.is_object()) return "expected an object of parameters; found " + api::describe(point);
  for (const auto& [name, value] : point.as_object()) {
    const auto parameter = std::ranges::find(space, name, &api::Parameter::name);
    if (parameter == space.end()) return "the space has no parameter " + Json(name).dump();
    const std::string expected = expected_instead(*parameter, value);
    if (!expected.empty()) {
      return name + ": found " + api::describe(value) + ", expected " + expected;
    }
  }
  return "";
}

Error outside(const std::string& where, const std::string& why) {
  return invalid(where + " is not of this space: " +
                 (why.empty() ? "a value is between those that a parameter has" : why));
}

std::string item(const char* list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

// Values of a known result, one for each objective.
Result<std::vector<double>> values_of(const KnownResult& known, std::size_t objectives,
                                      const std::string& where) {
  if (known.value.has_value() == known.values.has_value()) {
    return invalid(where + ": give either value or, one an objective, values");
  }
  std::vector<double> values = known.value ? std::vector{*known.value} : *known.values;
  if (values.size() != objectives) {
    return invalid(where + ": there are " + std::to_string(objectives) +
                   " objectives, so as many values are needed; found " +
                   std::to_string(values.size()));
  }
  if (std::ranges::all_of(values, [](double value) { return std::isfinite(value); })) return values;
  return invalid(where + ": a value must be finite; leave out trials that failed");
}

Result<Json> known_point(const std::vector<api::Parameter>& space, const search::SpaceMap& map,
                         const Json& params, const std::string& where) {
  if (const std::string why = why_outside(space, params); !why.empty()) return outside(where, why);
  Random random(kFillPurpose);
  std::optional<Json> point = map.image(params, random);
  if (!point) return outside(where, "");
  for (const auto& [name, value] : point->as_object()) {
    if (params.find(name) == nullptr) return invalid(where + " lacks the parameter " + name);
  }
  return *std::move(point);
}

}  // namespace

Status check_first_points(const std::vector<api::Parameter>& space,
                          const std::vector<Json>& points) {
  FETTLE_ASSIGN(const search::SpaceMap map, search::SpaceMap::make(space, /*names=*/{}));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string why = why_outside(space, points[i]);
    if (!why.empty()) return outside(item("first", i), why);
    Random random(kFillPurpose);
    if (!map.image(points[i], random)) return outside(item("first", i), "");
  }
  return success();
}

Result<Json> fill_point(const api::StudySpec& spec, const Json& point, std::int64_t trial) {
  FETTLE_ASSIGN(const search::SpaceMap map, search::SpaceMap::make(spec.parameters, /*names=*/{}));
  Random random(mix_keys(static_cast<std::uint64_t>(spec.algorithm.seed), kFillPurpose),
                static_cast<std::uint64_t>(trial));
  std::optional<Json> filled = map.image(point, random);
  if (!filled) return outside("a point", "");
  return *std::move(filled);
}

Result<std::vector<api::PriorObservation>> priors_of(const api::StudySpec& spec,
                                                     const KnownResults& results) {
  std::vector<api::PriorObservation> out;
  if (results.known.empty()) return out;
  FETTLE_ASSIGN(const search::SpaceMap map, search::SpaceMap::make(spec.parameters, /*names=*/{}));
  for (std::size_t i = 0; i < results.known.size(); ++i) {
    const KnownResult& known = results.known[i];
    const std::string where = item("known", i);
    api::PriorObservation prior;
    FETTLE_ASSIGN(prior.parameters, known_point(spec.parameters, map, known.params, where));
    FETTLE_ASSIGN(prior.values, values_of(known, spec.objectives.size(), where));
    if (known.step.value_or(spec.resource.max) >= spec.resource.max)
      out.push_back(std::move(prior));
  }
  return out;
}

}  // namespace fettle::cli
