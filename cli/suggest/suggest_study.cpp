#include "cli/suggest/suggest_study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "api/names.h"
#include "api/nearest.h"
#include "search/auto.h"

namespace fettle::cli {
namespace {

using Names = std::span<const std::string_view>;

std::string found(const Json& value) {
  const std::string text = value.dump();
  constexpr std::size_t kLongest = 60;
  return text.size() <= kLongest ? text : std::string(value.type_name());
}

Error wrong(std::string_view what, std::string_view expected, const Json& value) {
  return invalid(std::string(what) + " must be " + std::string(expected) + "; found " +
                 found(value));
}

Status check_members(const Json& object, Names known) {
  for (const auto& [key, value] : object.as_object()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string names;
    for (const std::string_view name : known)
      names += (names.empty() ? "" : ", ") + std::string(name);
    return invalid("there is no member " + Json(key).dump() + "; expected " + names +
                   api::did_you_mean(key, known));
  }
  return success();
}

// A member that is absent or null leaves `out` as it is.
Status read_integer(const Json& object, std::string_view key, std::int64_t least,
                    std::int64_t& out) {
  const Json* value = object.find(key);
  if (value == nullptr || value->is_null()) return success();
  if (!value->is_integer() || value->as_integer() < least) {
    return wrong(
        key, least < 0 ? "a whole number" : "a whole number of at least " + std::to_string(least),
        *value);
  }
  out = value->as_integer();
  return success();
}

Status read_integer(const Json& object, std::string_view key, std::int64_t least,
                    std::optional<std::int64_t>& out) {
  const Json* value = object.find(key);
  if (value == nullptr || value->is_null()) return success();
  out.emplace(0);
  return read_integer(object, key, least, *out);
}

// A finite number above `least`.
Status read_above(const Json& object, std::string_view key, double least, double& out) {
  const Json* value = object.find(key);
  if (value == nullptr || value->is_null()) return success();
  const bool usable =
      value->is_number() && value->as_double() > least && std::isfinite(value->as_double());
  if (!usable) return wrong(key, "a number above " + Json(least).dump(), *value);
  out = value->as_double();
  return success();
}

Status read_above(const Json& object, std::string_view key, double least,
                  std::optional<double>& out) {
  const Json* value = object.find(key);
  if (value == nullptr || value->is_null()) return success();
  out.emplace(0);
  return read_above(object, key, least, *out);
}

Status read_boolean(const Json& object, std::string_view key, bool& out) {
  const Json* value = object.find(key);
  if (value == nullptr || value->is_null()) return success();
  if (!value->is_boolean()) return wrong(key, "true or false", *value);
  out = value->as_boolean();
  return success();
}

Status read_name(const Json& object, std::string_view key, std::string& out) {
  const Json* value = object.find(key);
  if (value == nullptr) return invalid(std::string(key) + " is missing");
  if (!value->is_string()) return wrong(key, "a string", *value);
  out = value->as_string();
  return success();
}

Status read_range(const Json& json, api::Parameter& out) {
  static constexpr std::string_view kMembers[] = {"name", "type", "low", "high",
                                                  "log",  "step", "when"};
  FETTLE_TRY(check_members(json, kMembers));
  for (const auto& [key, bound] : {std::pair{"low", &out.min}, std::pair{"high", &out.max}}) {
    const Json* value = json.find(key);
    if (value == nullptr) return invalid(std::string(key) + " is missing");
    if (!value->is_number()) return wrong(key, "a number", *value);
    *bound = value->as_double();
  }
  bool log = false;
  FETTLE_TRY(read_boolean(json, "log", log));
  out.scale = log ? api::Scale::kLog : api::Scale::kLinear;
  const Json* step = json.find("step");
  if (step == nullptr || step->is_null()) return success();
  if (!step->is_number()) return wrong("step", "a number", *step);
  out.step = step->as_double();
  return success();
}

Status read_choices(const Json& json, api::Parameter& out) {
  static constexpr std::string_view kMembers[] = {"name", "type", "choices", "when"};
  FETTLE_TRY(check_members(json, kMembers));
  const Json* choices = json.find("choices");
  if (choices == nullptr) return invalid("choices is missing");
  if (!choices->is_array()) return wrong("choices", "an array", *choices);
  out.values = choices->as_array();
  return success();
}

Status read_kind(const Json& json, api::Parameter& out) {
  std::string type;
  FETTLE_TRY(read_name(json, "type", type));
  if (type == "float" || type == "int") {
    out.type = type == "int" ? api::ParameterType::kInteger : api::ParameterType::kDouble;
    return read_range(json, out);
  }
  if (type == "categorical") {
    out.type = api::ParameterType::kCategorical;
    return read_choices(json, out);
  }
  if (type == "bool") {
    static constexpr std::string_view kMembers[] = {"name", "type", "when"};
    out.type = api::ParameterType::kBoolean;
    return check_members(json, kMembers);
  }
  return wrong("type", "float, int, categorical or bool", Json(type));
}

Status read_condition(const Json& json, api::Parameter& out) {
  static constexpr std::string_view kMembers[] = {"param", "in"};
  const Json* when = json.find("when");
  if (when == nullptr || when->is_null()) return success();
  if (!when->is_object()) return wrong("when", R"({"param": ..., "in": [...]})", *when);
  FETTLE_TRY(check_members(*when, kMembers));
  api::Condition condition;
  FETTLE_TRY(read_name(*when, "param", condition.parameter));
  const Json* in = when->find("in");
  if (in == nullptr || !in->is_array()) {
    return wrong("when.in", "an array of values", in == nullptr ? Json() : *in);
  }
  condition.in = in->as_array();
  out.when = std::move(condition);
  return success();
}

Result<api::Parameter> read_parameter(const Json& json, std::size_t index) {
  const std::string where = "space[" + std::to_string(index) + "]";
  if (!json.is_object()) return wrong(where, "an object", json);
  api::Parameter out;
  Status read = read_name(json, "name", out.name);
  if (read.ok()) read = read_kind(json, out);
  if (read.ok()) read = read_condition(json, out);
  if (!read.ok()) {
    return Error(read.error()).in(where + (out.name.empty() ? "" : " " + Json(out.name).dump()));
  }
  return out;
}

Result<api::Direction> read_direction(const Json& json) {
  if (json == Json("minimize")) return api::Direction::kMinimize;
  if (json == Json("maximize")) return api::Direction::kMaximize;
  return wrong("direction", R"("minimize" or "maximize")", json);
}

Status read_objectives(const Json& study, std::vector<api::Objective>& out) {
  const Json* one = study.find("direction");
  const Json* several = study.find("directions");
  if (one != nullptr && several != nullptr) {
    return invalid("give direction for one objective or directions for several, not both");
  }
  Json::Array list = {one != nullptr ? *one : Json("minimize")};
  if (several != nullptr) {
    if (!several->is_array() || several->as_array().empty()) {
      return wrong("directions", "an array with a direction for each objective", *several);
    }
    list = several->as_array();
  }
  for (const Json& item : list) {
    FETTLE_ASSIGN(const api::Direction direction, read_direction(item));
    out.push_back({"value" + std::to_string(out.size()), direction, {}, api::Take::kLast});
  }
  return success();
}

Status read_algorithm(const Json& study, api::Algorithm& out) {
  static constexpr std::string_view kMembers[] = {"name",
                                                  "seed",
                                                  "startup_trials",
                                                  "candidates",
                                                  "points",
                                                  "shuffle",
                                                  "reduction_factor",
                                                  "interval",
                                                  "quantile",
                                                  "resample_probability",
                                                  "cost_aware"};
  const Json* json = study.find("algorithm");
  if (json == nullptr || json->is_null()) return success();
  if (!json->is_object()) return wrong("algorithm", R"({"name": ..., settings})", *json);
  FETTLE_TRY(check_members(*json, kMembers));
  FETTLE_TRY(read_name(*json, "name", out.name));
  FETTLE_TRY(read_integer(*json, "seed", std::numeric_limits<std::int64_t>::min(), out.seed));
  FETTLE_TRY(read_integer(*json, "startup_trials", 0, out.startup_trials));
  FETTLE_TRY(read_integer(*json, "candidates", 1, out.candidates));
  FETTLE_TRY(read_integer(*json, "points", 2, out.points));
  FETTLE_TRY(read_above(*json, "reduction_factor", 1, out.reduction_factor));
  FETTLE_TRY(read_integer(*json, "interval", 1, out.interval));
  FETTLE_TRY(read_above(*json, "quantile", 0, out.quantile));
  FETTLE_TRY(read_boolean(*json, "cost_aware", out.cost_aware));
  if (const Json* share = json->find("resample_probability")) {
    const double value = share->is_number() ? share->as_double() : -1;
    if (!(value >= 0 && value <= 1)) {
      return wrong("resample_probability", "a number from 0 to 1", *share);
    }
    out.resample_probability = value;
  }
  return read_boolean(*json, "shuffle", out.shuffle);
}

Status read_resource(const Json& study, api::Resource& out) {
  const Json* json = study.find("resource");
  if (json == nullptr || json->is_null()) return success();
  if (!json->is_object()) return wrong("resource", R"({"min": ..., "max": ...})", *json);
  FETTLE_TRY(read_integer(*json, "min", 1, out.min));
  out.max = out.min;
  return read_integer(*json, "max", out.min, out.max);
}

Status read_early_stopping(const Json& study, std::optional<api::EarlyStopping>& out) {
  static constexpr std::string_view kMembers[] = {
      "name",       "reduction_factor", "promote",   "min_trials",  "start_step",
      "percentile", "patience",         "threshold", "probability", "top"};
  const Json* json = study.find("early_stopping");
  if (json == nullptr || json->is_null()) return success();
  if (!json->is_object()) return wrong("early_stopping", R"({"name": ..., settings})", *json);
  FETTLE_TRY(check_members(*json, kMembers));
  api::EarlyStopping rules;
  FETTLE_TRY(read_name(*json, "name", rules.name));
  const std::vector<std::string> known = search::early_stopping_names();
  if (std::find(known.begin(), known.end(), rules.name) == known.end()) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return wrong("early_stopping.name", "one of " + names, Json(rules.name));
  }
  FETTLE_TRY(read_integer(*json, "min_trials", 1, rules.min_trials));
  FETTLE_TRY(read_integer(*json, "start_step", 1, rules.start_step));
  FETTLE_TRY(read_boolean(*json, "promote", rules.promote));
  FETTLE_TRY(read_integer(*json, "patience", 1, rules.patience));
  FETTLE_TRY(read_integer(*json, "top", 1, rules.top));
  FETTLE_TRY(read_above(*json, "reduction_factor", 1, rules.reduction_factor));
  FETTLE_TRY(read_above(*json, "percentile", 0, rules.percentile));
  FETTLE_TRY(read_above(*json, "probability", 0, rules.probability));
  if (const Json* threshold = json->find("threshold")) {
    if (!threshold->is_number()) return wrong("threshold", "a number", *threshold);
    rules.threshold = threshold->as_double();
  } else if (rules.name == "threshold") {
    return invalid("threshold is missing");
  }
  out = std::move(rules);
  return success();
}

// A client that gives a resource and no rule speaks of steps because it wants to save some, and has
// to resume: it is told to.
Status settle_fidelity(search::Problem& problem) {
  search::settle_fidelity(problem, {.resumes = true, .limits_work = true, .few_trials = false});
  const bool steps = problem.resource.max > problem.resource.min;
  if (!api::pauses_trials(problem.algorithm.name)) return success();
  if (problem.early_stopping) {
    return invalid("algorithm " + problem.algorithm.name +
                   " decides by itself who goes on; leave early_stopping out");
  }
  if (!steps) {
    return invalid("algorithm " + problem.algorithm.name +
                   " compares trials on the way; give a resource with max above min");
  }
  if (api::is_population(problem.algorithm.name) && problem.max_trials < api::kLeastMembers) {
    return invalid("algorithm " + problem.algorithm.name + " needs max_trials of at least " +
                   std::to_string(api::kLeastMembers) + ": it is the population");
  }
  return success();
}

}  // namespace

Result<search::Problem> read_suggest_study(const Json& study) {
  if (!study.is_object()) return wrong("study", "an object", study);
  search::Problem problem;
  FETTLE_TRY(read_integer(study, "seed", std::numeric_limits<std::int64_t>::min(),
                          problem.algorithm.seed));
  FETTLE_TRY(read_integer(study, "max_trials", 0, problem.max_trials));
  FETTLE_TRY(read_integer(study, "parallel", 0, problem.parallelism));
  FETTLE_TRY(read_above(study, "max_cost", 0, problem.max_cost));
  FETTLE_TRY(read_objectives(study, problem.objectives));
  FETTLE_TRY(read_algorithm(study, problem.algorithm));
  FETTLE_TRY(read_resource(study, problem.resource));
  FETTLE_TRY(read_early_stopping(study, problem.early_stopping));
  FETTLE_TRY(settle_fidelity(problem));
  const Json* space = study.find("space");
  if (space == nullptr || !space->is_array() || space->as_array().empty()) {
    return wrong("space", "an array of parameters", space == nullptr ? Json() : *space);
  }
  for (const Json& item : space->as_array()) {
    FETTLE_ASSIGN(api::Parameter parameter, read_parameter(item, problem.parameters.size()));
    problem.parameters.push_back(std::move(parameter));
  }
  return problem;
}

}  // namespace fettle::cli
