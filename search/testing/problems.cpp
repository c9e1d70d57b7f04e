#include "search/testing/problems.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/trial/trial.h"
#include "base/check.h"

namespace fettle::search::testing {
namespace {

constexpr std::string_view kCounting = "_cost";

bool contains(const std::vector<Json>& values, const Json& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool is_active(const api::Parameter& parameter, const Json& point) {
  if (!parameter.when) return true;
  const Json* parent = point.find(parameter.when->parameter);
  return parent != nullptr && contains(parameter.when->in, *parent);
}

std::vector<Json> values_of(const api::Parameter& parameter) {
  if (parameter.type == api::ParameterType::kCategorical) return parameter.values;
  if (parameter.type == api::ParameterType::kBoolean) return {Json(false), Json(true)};
  std::vector<Json> out;
  const double step = parameter.step.value_or(1);
  for (int i = 0; parameter.min + i * step <= parameter.max + 1e-9 * step; ++i) {
    out.push_back(Json(parameter.min + i * step));
  }
  return out;
}

std::string complaint_about_value(const api::Parameter& parameter, const Json& value) {
  const std::string what = parameter.name + " = " + value.dump();
  if (parameter.type == api::ParameterType::kBoolean) return value.is_boolean() ? "" : what;
  if (parameter.type == api::ParameterType::kCategorical) {
    return contains(parameter.values, value) ? "" : what + " is no choice";
  }
  if (!value.is_number()) return what + " is no number";
  const double number = value.as_double();
  if (!(number >= parameter.min && number <= parameter.max)) return what + " is out of bounds";
  const bool integer = parameter.type == api::ParameterType::kInteger;
  if (integer && !value.is_integer()) return what + " is no integer";
  if (!integer && !parameter.step) return "";
  const double step = parameter.step.value_or(1);
  const double steps = (number - parameter.min) / step;
  return std::abs(steps - std::round(steps)) < 1e-6 ? "" : what + " is off the step";
}

api::Parameter random_range(Random& random, std::string name, bool finite) {
  const bool is_integer = random.below(2) == 0;
  const bool log = random.below(2) == 0;
  api::Parameter out;
  out.name = std::move(name);
  out.type = is_integer ? api::ParameterType::kInteger : api::ParameterType::kDouble;
  out.scale = log ? api::Scale::kLog : api::Scale::kLinear;
  const double width = finite ? static_cast<double>(random.below(4))
                              : std::pow(10.0, random.uniform() * 9 - (is_integer ? 0 : 3));
  out.min = log ? std::pow(10.0, random.uniform() * 8 - 4) : (random.uniform() - 0.5) * 1000;
  // Whole numbers and quarters are exact, so that values of finite spaces compare as they are.
  const double grain = is_integer ? 1.0 : 0.25;
  if (is_integer || finite) {
    out.min = std::round(out.min / grain) * grain;
    if (log) out.min = std::max(out.min, grain);
  }
  out.max = out.min + (is_integer ? std::round(width) : width);
  if (is_integer ? random.below(3) == 0 : finite || random.below(3) == 0) {
    out.step = is_integer ? 1.0 + static_cast<double>(random.below(3)) : (finite ? 1.0 : width / 7);
  }
  return out;
}

}  // namespace

api::Parameter real(std::string name, double min, double max, api::Scale scale) {
  api::Parameter out;
  out.name = std::move(name);
  out.min = min;
  out.max = max;
  out.scale = scale;
  return out;
}

api::Parameter stepped(std::string name, double min, double max, double step) {
  api::Parameter out = real(std::move(name), min, max);
  out.step = step;
  return out;
}

api::Parameter integer(std::string name, double min, double max, api::Scale scale) {
  api::Parameter out = real(std::move(name), min, max, scale);
  out.type = api::ParameterType::kInteger;
  return out;
}

api::Parameter choice(std::string name, std::vector<Json> values) {
  api::Parameter out;
  out.name = std::move(name);
  out.type = api::ParameterType::kCategorical;
  out.values = std::move(values);
  return out;
}

api::Parameter boolean(std::string name) {
  api::Parameter out;
  out.name = std::move(name);
  out.type = api::ParameterType::kBoolean;
  return out;
}

api::Parameter only_if(api::Parameter child, std::string parameter, std::vector<Json> in) {
  child.when = api::Condition{std::move(parameter), std::move(in)};
  return child;
}

std::vector<api::Parameter> random_space(Random& random, int most, bool finite) {
  std::vector<api::Parameter> out;
  const int count = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(most)));
  for (int i = 0; i < count; ++i) {
    const std::string name = "p" + std::to_string(i);
    const std::uint64_t kind = random.below(4);
    api::Parameter parameter;
    if (kind == 0) {
      parameter = boolean(name);
    } else if (kind == 1) {
      std::vector<Json> values = {"a", 1, 2.5, true};
      values.resize(1 + random.below(values.size()));
      parameter = choice(name, values);
    } else {
      parameter = random_range(random, name, finite);
    }
    const std::size_t parent = random.below(2 * static_cast<std::uint64_t>(i) + 1);
    if (parent < out.size()) {
      const api::Parameter& on = out[parent];
      const bool has_values = on.values.size() > 0 || on.type == api::ParameterType::kBoolean;
      const bool small = has_values || (finite && on.max - on.min < 10);
      if (small) {
        const std::vector<Json> values = values_of(on);
        parameter = only_if(parameter, on.name, {values[random.below(values.size())]});
      }
    }
    out.push_back(std::move(parameter));
  }
  return out;
}

std::string complaint(const std::vector<api::Parameter>& parameters, const Json& point) {
  std::size_t position = 0;
  for (const api::Parameter& parameter : parameters) {
    if (!is_active(parameter, point)) continue;
    if (position >= point.as_object().size()) return parameter.name + " is missing";
    const auto& [name, value] = point.as_object()[position++];
    if (name != parameter.name) return "found " + name + " where " + parameter.name + " belongs";
    std::string wrong = complaint_about_value(parameter, value);
    if (!wrong.empty()) return wrong;
  }
  return position == point.as_object().size() ? "" : "more parameters than are active";
}

std::vector<Json> enumerate(const std::vector<api::Parameter>& parameters) {
  std::vector<Json> points = {Json::object()};
  for (const api::Parameter& parameter : parameters) {
    std::vector<Json> longer;
    for (const Json& point : points) {
      if (!is_active(parameter, point)) {
        longer.push_back(point);
        continue;
      }
      for (const Json& value : values_of(parameter)) {
        longer.push_back(point);
        longer.back().set(parameter.name, value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

Problem problem_of(std::vector<api::Parameter> parameters, std::string algorithm,
                   std::int64_t seed) {
  Problem out;
  out.parameters = std::move(parameters);
  out.objectives = {{"loss", api::Direction::kMinimize, {}, api::Take::kLast}};
  out.algorithm.cost_aware = algorithm.ends_with(kCounting);
  if (out.algorithm.cost_aware) algorithm.resize(algorithm.size() - kCounting.size());
  out.algorithm.name = *api::from_string<api::AlgorithmKind>(algorithm);
  out.algorithm.seed = seed;
  return out;
}

bool is_population(const std::string& algorithm) {
  const auto kind = api::from_string<api::AlgorithmKind>(algorithm);  // nullopt for "gp_cost"
  return kind && api::traits(*kind).population;
}

std::vector<std::string> searching_samplers() {
  std::vector<std::string> names;
  for (const api::AlgorithmTraits& algorithm : api::all_algorithms()) {
    if (!algorithm.replays) names.emplace_back(algorithm.name);
  }
  return names;
}

std::vector<std::string> samplers_in_every_mode() {
  std::vector<std::string> names = searching_samplers();
  names.push_back("gp" + std::string(kCounting));
  return names;
}

Event fact(std::int64_t trial, api::FactKind kind, std::int64_t step, std::optional<double> value) {
  Event out;
  out.trial = trial;
  out.fact.kind = kind;
  out.fact.step = step;
  out.fact.values = {value};
  out.fact.infeasible = !value.has_value();
  return out;
}

Event result(std::int64_t trial, std::optional<double> value) {
  return fact(trial, api::FactKind::kResult, 1, value);
}

}  // namespace fettle::search::testing
