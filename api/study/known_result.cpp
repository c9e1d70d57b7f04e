#include "api/study/known_result.h"

#include <cmath>
#include <string_view>
#include <vector>

#include "api/fields/nearest.h"
#include "api/study/study_rules.h"

namespace fettle::api {
namespace {

constexpr std::string_view kMembers[] = {"parameters", "values", "step", "stopped", "name"};

Error wrong_type(const std::string& member, const Json& found, const char* expected) {
  return invalid(member + ": found " + found.dump() + ", expected " + expected);
}

Status read_parameters(const Json* parameters, KnownResult& out) {
  if (parameters == nullptr || !parameters->is_object() || parameters->as_object().empty()) {
    return invalid("has no parameters; expected an object of their values, by name");
  }
  for (const auto& [name, value] : parameters->as_object()) {
    if (value.is_number() || value.is_boolean() || value.is_string()) continue;
    return wrong_type("parameters." + name, value, "a number, a text, true or false");
  }
  out.parameters = *parameters;
  return success();
}

Status read_values(const Json* values, KnownResult& out) {
  if (values == nullptr || !values->is_object() || values->as_object().empty()) {
    return invalid("has no values; expected an object with a number for each objective");
  }
  for (const auto& [metric, value] : values->as_object()) {
    if (!value.is_number() || !std::isfinite(value.as_double())) {
      return wrong_type("values." + metric, value, "a number");
    }
    out.values[metric] = value.as_double();
  }
  return success();
}

Status read_others(const Json& document, KnownResult& out) {
  if (const Json* const step = document.find("step")) {
    if (!step->is_integer() || step->as_integer() < 0) {
      return wrong_type("step", *step, "a whole number from 0");
    }
    out.step = step->as_integer();
  }
  if (const Json* const stopped = document.find("stopped")) {
    if (!stopped->is_boolean()) return wrong_type("stopped", *stopped, "true or false");
    out.stopped = stopped->as_boolean();
  }
  if (const Json* const name = document.find("name")) {
    if (!name->is_string() || name->as_string().size() > kLongestName) {
      return wrong_type("name", *name, "a text of at most 63 bytes");
    }
    out.name = name->as_string();
  }
  return success();
}

}  // namespace

Result<KnownResult> read_known_result(const Json& document) {
  if (!document.is_object()) {
    return invalid("found " + std::string(document.type_name()) +
                   ", expected an object with parameters and values");
  }
  for (const auto& [member, value] : document.as_object()) {
    bool is_known = false;
    for (const std::string_view one : kMembers) is_known = is_known || one == member;
    if (is_known) continue;
    const std::vector<std::string_view> members(std::begin(kMembers), std::end(kMembers));
    return invalid(member + ": there is no such member" + did_you_mean(member, members));
  }
  KnownResult out;
  FETTLE_TRY(read_parameters(document.find("parameters"), out));
  FETTLE_TRY(read_values(document.find("values"), out));
  FETTLE_TRY(read_others(document, out));
  return out;
}

}  // namespace fettle::api
