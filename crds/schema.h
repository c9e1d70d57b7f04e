// SchemaVisitor: a struct's field list (api/fields/field.h) as the OpenAPI v3 schema of an object.
//
// A field that applies only for some values of another one (`only_if`) is optional here; rules in
// CEL, found by visiting the struct once for each such value, state when it must or may not be
// present. Defaults are spelt out in spec, so that a stored object is complete; status has none,
// because Fettle alone writes it, and writes it whole. Lives as long as one struct is visited. Not
// synchronised.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/fields/field.h"
#include "api/fields/field_writer.h"
#include "api/meta/metadata.h"
#include "base/json.h"
#include "crds/values.h"

namespace fettle::crds {

enum class Defaults { kLeftOut, kSpeltOut };

template <class Struct>
Json struct_schema(Defaults defaults);

// Entry<T>::Type: type of the value of an optional or of a vector's elements; absent for other
// types.
template <class T>
struct Entry {
  static constexpr bool kOptional = false;
};
template <class T>
struct Entry<std::optional<T>> {
  static constexpr bool kOptional = true;
  using Type = T;
};
template <class T>
struct Entry<std::vector<T>> {
  static constexpr bool kOptional = false;
  using Type = T;
};

// Returns the names that a field of this type accepts; empty if it accepts any text, number ...
template <class T>
std::vector<std::string_view> choices_of(const api::FieldRules& rules) {
  std::vector<std::string_view> names(rules.choices.begin(), rules.choices.end());
  if constexpr (api::NamedEnum<T>) {
    for (const auto& entry : api::enum_names<T>()) names.push_back(entry.name);
  }
  return names;
}

template <class T>
Json value_schema(const api::FieldRules& rules, Defaults defaults) {
  if constexpr (std::is_same_v<T, bool>) {
    return boolean_schema(rules);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return whole_schema(rules);
  } else if constexpr (std::is_same_v<T, double>) {
    return number_schema(rules);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return text_schema(rules);
  } else if constexpr (std::is_same_v<T, Json>) {
    return any_schema(rules);
  } else if constexpr (std::is_same_v<T, std::map<std::string, double>>) {
    return map_schema(number_schema(rules), rules);
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    return map_schema(text_schema(rules), rules);
  } else if constexpr (std::is_same_v<T, api::Metadata>) {
    return Json::object({{"type", "object"}});  // the API server has its own schema for it
  } else if constexpr (api::NamedEnum<T>) {
    return choice_schema(choices_of<T>(rules));
  } else if constexpr (Entry<T>::kOptional) {
    return value_schema<typename Entry<T>::Type>(rules, defaults);
  } else if constexpr (requires { typename Entry<T>::Type; }) {
    Json items = value_schema<typename Entry<T>::Type>(rules, defaults);
    // An absent element is null: a place in the list cannot be left out.
    if constexpr (Entry<typename Entry<T>::Type>::kOptional) items.set("nullable", true);
    return list_schema(std::move(items), rules);
  } else {
    return struct_schema<T>(defaults);
  }
}

// A field as it is when another field, the decider, has one of its values.
struct CaseField {
  std::string_view name;
  std::string_view description;
  api::FieldRules rules;
  bool is_whole = false;
};

// The fields that depend on the decider, for one of its values.
struct Case {
  std::string_view value;
  std::vector<CaseField> fields;
};

// Sets the decider on the way; later fields then are as in that case.
class CaseVisitor {
 public:
  CaseVisitor(std::string_view decider, std::string_view value) : decider_(decider) {
    case_.value = value;
  }

  template <class T>
  void field(std::string_view name, T& member, std::string_view description,
             const api::FieldRules& rules = {}) {
    if (name == decider_) {
      if constexpr (std::is_same_v<T, std::string>) member = case_.value;
      if constexpr (api::NamedEnum<T>) member = *api::from_string<T>(case_.value);
    } else if (!rules.applies_to.empty()) {
      case_.fields.push_back({name, description, rules, is_whole<T>()});
    }
  }
  void constant(std::string_view /*name*/, std::string_view /*text*/) {}
  void ignored(std::string_view /*name*/) {}

  Case take() && { return std::move(case_); }

 private:
  template <class T>
  static constexpr bool is_whole() {
    return std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::optional<std::int64_t>>;
  }

  std::string_view decider_;
  Case case_;
};

// Adds rules for the fields of `schema` that depend on `decider`. The schema already has the bounds
// of the first case.
void add_case_rules(Json& schema, std::string_view decider, const std::vector<Case>& cases);

class SchemaVisitor {
 public:
  explicit SchemaVisitor(Defaults defaults) : defaults_(defaults) {}

  template <class T>
  void field(std::string_view name, const T& member, std::string_view description,
             const api::FieldRules& rules = {}) {
    const Defaults defaults = name == "status" ? Defaults::kLeftOut : defaults_;
    Json schema = value_schema<T>(rules, defaults);
    if (!rules.applies_to.empty()) has_conditional_ = true;
    if (decider_.empty()) {  // only the first with a choice of names can decide on others
      choices_ = choices_of<T>(rules);
      if (!choices_.empty()) decider_ = name;
    }
    Json value = rules.required || defaults == Defaults::kLeftOut
                     ? Json()
                     : default_of(member, rules, schema);
    add(name, std::move(schema), std::string(description), rules, std::move(value));
  }
  void constant(std::string_view name, std::string_view text);
  void ignored(std::string_view /*name*/) {}

  // Returns the field on which others depend, the first with a choice of names; "" if none does.
  std::string_view decider() const { return has_conditional_ ? decider_ : std::string_view(); }
  const std::vector<std::string_view>& choices() const { return choices_; }
  Json take() &&;

 private:
  // Null if an absent field stays absent. An object with a required field has no default: it would
  // lack that field.
  template <class T>
  static Json default_of(const T& member, const api::FieldRules& rules, const Json& schema) {
    if (api::is_left_out(member, rules)) return Json();
    if (schema.find("properties") == nullptr) return api::write_value(member, rules);
    return schema.find("required") == nullptr ? defaults_within(schema) : Json();
  }
  // Returns the defaults of an object's own fields: rules see the default of an object as written.
  static Json defaults_within(const Json& schema);
  void add(std::string_view name, Json schema, std::string description,
           const api::FieldRules& rules, Json default_value);

  Defaults defaults_;
  Json properties_ = Json::object();
  Json required_ = Json::array();
  bool has_conditional_ = false;
  std::string_view decider_;
  std::vector<std::string_view> choices_;
};

template <class Struct>
Json struct_schema(Defaults defaults) {
  const Struct value;  // its members are the defaults
  SchemaVisitor visitor(defaults);
  visit_fields(visitor, value);
  std::vector<Case> cases;
  const std::string_view decider = visitor.decider();
  for (const std::string_view choice : visitor.choices()) {
    if (decider.empty()) break;  // there are choices, but no field depends on them
    Struct copy;
    CaseVisitor one(decider, choice);
    visit_fields(one, copy);
    cases.push_back(std::move(one).take());
  }
  Json schema = std::move(visitor).take();
  if (!cases.empty()) add_case_rules(schema, decider, cases);
  return schema;
}

}  // namespace fettle::crds
