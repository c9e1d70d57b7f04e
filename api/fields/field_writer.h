// FieldWriter: writes a struct as a JSON object by its field list (field.h).
//
// Leaves out absent optionals, empty texts, lists and maps, times that are 0 and fields that do not
// apply; each reads back as the same value. Spells defaults out, so that two documents can be
// compared. Not synchronised; lives as long as one object is written.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/fields/field.h"
#include "base/json.h"

namespace fettle::api {

// One overload for each type of field.
Json write_value(bool value, const FieldRules& rules);
Json write_value(std::int64_t value, const FieldRules& rules);
Json write_value(double value, const FieldRules& rules);
Json write_value(const std::string& value, const FieldRules& rules);
Json write_value(const Json& value, const FieldRules& rules);
Json write_value(const std::map<std::string, std::string>& value, const FieldRules& rules);
Json write_value(const std::map<std::string, double>& value, const FieldRules& rules);

template <NamedEnum E>
Json write_value(E value, const FieldRules& /*rules*/) {
  return Json(to_string(value));
}

template <class Struct>
requires std::is_class_v<Struct> Json write_value(const Struct& value, const FieldRules& rules);

template <class T>
Json write_value(const std::optional<T>& value, const FieldRules& rules) {
  return value ? write_value(*value, rules) : Json();
}

template <class T>
Json write_value(const std::vector<T>& items, const FieldRules& rules) {
  return Json::array_of(items, [&](const T& item) { return write_value(item, rules); });
}

// Whether a field with this value is left out.
template <class T>
bool is_left_out(const T& value, const FieldRules& rules) {
  if constexpr (requires { value.has_value(); }) {
    return !value.has_value();
  } else if constexpr (requires { value.is_null(); }) {
    return value.is_null();
  } else if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return rules.form == Form::kTimestamp && value == 0;
  } else {
    return false;
  }
}

class FieldWriter {
 public:
  template <class T>
  void field(std::string_view name, const T& member, std::string_view /*description*/,
             const FieldRules& rules = {}) {
    if (rules.applies && !is_left_out(member, rules)) out_.set(name, write_value(member, rules));
  }
  void constant(std::string_view name, std::string_view text) { out_.set(name, text); }
  void ignored(std::string_view /*name*/) {}

  Json take() && { return std::move(out_); }

 private:
  Json out_ = Json::object();
};

template <class Struct>
Json write_struct(const Struct& value) {
  FieldWriter writer;
  visit_fields(writer, value);
  return std::move(writer).take();
}

template <class Struct>
requires std::is_class_v<Struct> Json write_value(const Struct& value,
                                                  const FieldRules& /*rules*/) {
  return write_struct(value);
}

}  // namespace fettle::api
