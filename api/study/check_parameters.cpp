// Checks of parameters: ranges, names, values and conditions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "api/fields/nearest.h"
#include "api/study/check.h"
#include "api/study/known_result.h"
#include "api/study/parameter_env.h"

namespace fettle::api {
namespace {

constexpr double kGridTolerance = 1e-9;  // in steps: 0.1 + 0.2 is on a grid of 0.1

// `value` without the noise of floating-point arithmetic, for messages.
std::string tidy(double value) {
  char buffer[40];
  const int size = std::snprintf(buffer, sizeof buffer, "%.12g", value);
  return std::string(buffer, static_cast<std::size_t>(size));
}

bool on_grid(double value, const Parameter& p) {
  const double steps = (value - p.min) / *p.step;
  return std::fabs(steps - std::round(steps)) <= kGridTolerance * std::max(1.0, steps);
}

bool is_numeric(const Parameter& p) {
  return p.type == ParameterType::kDouble || p.type == ParameterType::kInteger;
}

bool can_take(const Parameter& p, const Json& value) {
  switch (p.type) {
    case ParameterType::kBoolean:
      return value.is_boolean();
    case ParameterType::kCategorical:
      return std::ranges::find(p.values, value) != p.values.end();
    case ParameterType::kInteger:
      if (!value.is_integer()) return false;
      break;
    case ParameterType::kDouble:
      break;
  }
  if (!value.is_number() || value.as_double() < p.min || value.as_double() > p.max) return false;
  return !p.step || on_grid(value.as_double(), p);
}

// Describes the values of a parameter, for messages.
std::string values_of(const Parameter& p) {
  if (p.type == ParameterType::kBoolean) return "true or false";
  if (p.type == ParameterType::kCategorical) {
    constexpr std::size_t kShown = 8;
    std::string out = "one of ";
    for (std::size_t i = 0; i < std::min(kShown, p.values.size()); ++i) {
      out += (i > 0 ? ", " : "") + describe(p.values[i]);
    }
    return p.values.size() > kShown ? out + " ..." : out;
  }
  std::string out = p.type == ParameterType::kInteger ? "a whole number" : "a number";
  out += " from " + describe(p.min) + " to " + describe(p.max);
  return p.step ? out + " in steps of " + describe(*p.step) : out;
}

void check_whole_numbers(const Parameter& p, const FieldPath& path, FieldErrors& errors) {
  const auto check = [&](std::string_view field, double value) {
    if (std::trunc(value) == value) return;
    errors.add(path.member(field), "found " + describe(value) +
                                       ", expected a whole number, because type is Integer; for "
                                       "fractions use type: Double");
  };
  check("min", p.min);
  check("max", p.max);
  if (p.step) check("step", *p.step);
}

void check_step(const Parameter& p, const FieldPath& path, FieldErrors& errors) {
  if (!p.step || p.max == p.min) return;  // with one value any step is right
  const double range = p.max - p.min;
  if (*p.step > range * (1 + kGridTolerance)) {
    errors.add(path.member("step"), "found " + describe(*p.step) +
                                        ", expected at most max - min, which is " + tidy(range));
  } else if (!on_grid(p.max, p)) {
    const double below = p.min + std::floor(range / *p.step) * *p.step;
    errors.add(path.member("max"),
               "found " + describe(p.max) + ", expected min plus a multiple of step (" +
                   describe(p.min) + " plus a multiple of " + describe(*p.step) +
                   "); the nearest that fit are " + tidy(below) + " and " + tidy(below + *p.step));
  }
}

void check_range(const Parameter& p, const FieldPath& path, FieldErrors& errors) {
  if (p.type == ParameterType::kInteger) check_whole_numbers(p, path, errors);
  if (p.min > p.max) {
    errors.add(path.member("min"),
               "found " + describe(p.min) + ", expected at most max, which is " + describe(p.max));
    return;
  }
  if (p.scale == Scale::kLog && p.min <= 0) {
    errors.add(path.member("min"), "found " + describe(p.min) +
                                       ", expected a number above 0, because scale is Log; raise "
                                       "min or use scale: Linear");
  }
  if (!errors.any_under(path)) check_step(p, path, errors);
}

void check_distinct(const std::vector<Json>& values, const FieldPath& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto end = values.begin() + static_cast<std::ptrdiff_t>(i);
    const auto first = std::find(values.begin(), end, values[i]);
    if (first == end) continue;
    errors.add(path.item(i), "found " + describe(values[i]) + " again, which is entry " +
                                 std::to_string(first - values.begin()) +
                                 " already; expected distinct values");
  }
}

// A trial sees its parameters as texts (environment variables), where 1 and "1" are the same.
void check_distinct_as_texts(const std::vector<Json>& values, const FieldPath& path,
                             FieldErrors& errors) {
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string text = parameter_env_value(values[i]);
    const auto [first, is_new] = seen.try_emplace(text, i);
    // check_distinct() reports equal values.
    if (is_new || values[first->second] == values[i]) continue;
    errors.add(path.item(i), "found " + describe(values[i]) + " beside " +
                                 describe(values[first->second]) + ", entry " +
                                 std::to_string(first->second) +
                                 ": a trial is given both as the text " + clean_text(text, 40) +
                                 " and could not tell them apart; remove or rename one");
  }
}

class ConditionCheck {
 public:
  ConditionCheck(const std::vector<Parameter>& all, std::size_t index, FieldErrors& errors)
      : all_(all), index_(index), condition_(*all[index].when), errors_(errors) {}

  void run(const FieldPath& path) {
    const FieldPath when = path.member("when");
    const Parameter* parent = find_parent(when.member("parameter"));
    check_distinct(condition_.in, when.member("in"), errors_);
    if (parent == nullptr) return;
    for (std::size_t i = 0; i < condition_.in.size(); ++i) {
      if (can_take(*parent, condition_.in[i])) continue;
      const FieldPath in = when.member("in");
      errors_.add(in.item(i), "found " + describe(condition_.in[i]) + ", which parameter " +
                                  parent->name + " cannot be; expected " + values_of(*parent));
    }
  }

 private:
  const Parameter* find_parent(const FieldPath& path) {
    std::vector<std::string_view> earlier;
    for (std::size_t i = 0; i < index_; ++i) {
      if (all_[i].name == condition_.parameter) return &all_[i];
      earlier.push_back(all_[i].name);
    }
    std::string message = "found " + describe(Json(condition_.parameter)) + ", ";
    const bool itself = all_[index_].name == condition_.parameter;
    const bool later =
        std::any_of(all_.begin() + static_cast<std::ptrdiff_t>(index_), all_.end(),
                    [&](const Parameter& p) { return p.name == condition_.parameter; });
    if (itself) {
      message += "which is this parameter itself; expected an earlier one";
    } else if (later) {
      message +=
          "which comes later; a parameter may only depend on earlier ones, so that there "
          "are no cycles: move it above this one";
    } else {
      message +=
          "expected the name of an earlier parameter" + did_you_mean(condition_.parameter, earlier);
    }
    errors_.add(path, std::move(message));
    return nullptr;
  }

  const std::vector<Parameter>& all_;
  std::size_t index_;
  const Condition& condition_;
  FieldErrors& errors_;
};

// Checks that names differ, also as names of environment variables.
void check_names(const std::vector<Parameter>& all, const FieldPath& path, FieldErrors& errors) {
  std::map<std::string, std::size_t> first_with;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name.empty()) continue;  // has an error already
    const std::string variable = parameter_env_name(all[i].name);
    const auto [entry, is_new] = first_with.emplace(variable, i);
    if (is_new) continue;
    const std::string& other = all[entry->second].name;
    const FieldPath item = path.item(i);
    if (other == all[i].name) {
      errors.add(item.member("name"),
                 "found " + describe(Json(other)) + " again, which is the name of parameter " +
                     std::to_string(entry->second) + " already; expected distinct names");
    } else {
      errors.add(item.member("name"), "found " + describe(Json(all[i].name)) +
                                          ", which would share the environment variable " +
                                          variable + " with " + other + "; rename one of them");
    }
  }
}

// Checks one point to try first, an object (the field list admits no other). It may omit
// parameters, and may name inactive parameters.
void check_point(const std::vector<Parameter>& all, const Json& point, const FieldPath& path,
                 FieldErrors& errors) {
  std::vector<std::string_view> names;
  for (const Parameter& p : all) names.push_back(p.name);
  for (const auto& [name, value] : point.as_object()) {
    const auto found = std::ranges::find(all, name, &Parameter::name);
    const FieldPath member = path.member(name);
    if (found == all.end()) {
      errors.add(member, "no parameter is called that" + did_you_mean(name, names));
    } else if (!can_take(*found, value)) {
      errors.add(member, "found " + describe(value) + ", expected " + values_of(*found));
    }
  }
}

}  // namespace

void check_points(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  // Only valid parameters say which values they can take.
  if (errors.any_under(FieldPath("spec").member("parameters")) || errors.any_under(path)) return;
  const std::vector<Json>& points = spec.warm_start->points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    check_point(spec.parameters, points[i], path.item(i), errors);
  }
}

void check_known(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  if (errors.any_under(path)) return;
  const std::vector<Json>& known = spec.warm_start->known;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto result = read_known_result(known[i]);
    if (!result.ok()) errors.add(path.item(i), result.error().message);
  }
}

void check_parameters(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  const std::vector<Parameter>& all = spec.parameters;
  check_names(all, path, errors);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FieldPath item = path.item(i);
    if (errors.any_under(item)) continue;
    if (is_numeric(all[i])) check_range(all[i], item, errors);
    check_distinct(all[i].values, item.member("values"), errors);
    check_distinct_as_texts(all[i].values, item.member("values"), errors);
  }
  // Runs last, because the values of a parent are known only if the parent is valid.
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FieldPath item = path.item(i);
    if (all[i].when && !errors.any_under(item)) ConditionCheck(all, i, errors).run(item);
  }
}

}  // namespace fettle::api
