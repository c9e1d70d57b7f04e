#include "crds/schema.h"

#include <algorithm>

namespace fettle::crds {
namespace {

using api::FieldRules;

bool same_bounds(const FieldRules& a, const FieldRules& b) {
  return a.min == b.min && a.max == b.max && a.above_min == b.above_min &&
         a.below_max == b.below_max && a.odd == b.odd;
}

std::vector<std::string_view> values_where_it_applies(const std::vector<Case>& cases,
                                                      std::size_t field) {
  std::vector<std::string_view> values;
  for (const Case& one : cases) {
    if (one.fields[field].rules.applies) values.push_back(one.value);
  }
  return values;
}

std::string cel_is_one_of(const std::string& value, std::span<const std::string_view> values) {
  if (values.size() == 1) return value + " == " + cel_text(values[0]);
  return value + " in " + cel_list(values);
}

// Adds the field's bounds for the cases in which they are narrower than the schema's.
void add_bounds_rules(Json& schema, const std::string& decider, const std::vector<Case>& cases,
                      std::size_t field) {
  const FieldRules& usual = cases.front().fields[field].rules;  // the schema's (schema.h)
  for (const Case& one : cases) {
    const CaseField& there = one.fields[field];
    // add_case_rules_of() refuses the field for values to which it does not apply.
    if (!there.rules.applies || same_bounds(there.rules, usual)) continue;
    const std::string name(there.name);
    add_rule(schema, {decider + " != " + cel_text(one.value) + " || !has(self." + name + ") || " +
                          cel_bounds("self." + name, there.rules, there.is_whole),
                      "expected " + api::expected_number(there.rules, there.is_whole), "." + name,
                      Reason::kInvalid});
  }
}

// Whether rules can read the field: they need a type.
bool seen_by_rules(const Json& schema) {
  if (schema.find("x-kubernetes-int-or-string") != nullptr) return true;
  if (const Json* items = schema.find("items")) return seen_by_rules(*items);
  return schema.find("type") != nullptr;
}

Json negated(Json schema) { return Json::object({{"not", std::move(schema)}}); }

Json either(Json a, Json b) {
  return Json::object({{"anyOf", Json::Array{std::move(a), std::move(b)}}});
}

// Does what add_case_rules does, for a field that rules cannot read.
void add_case_schemas(Json& schema, std::string_view decider, const std::vector<Case>& cases,
                      std::size_t field) {
  const CaseField& first = cases.front().fields[field];
  const Json choice =
      Json::object({{"enum", Json::array_of(values_where_it_applies(cases, field))}});
  const Json applies =
      Json::object({{"properties", Json::object({{std::string(decider), choice}})}});
  const Json there = Json::object({{"required", Json::Array{first.name}}});
  Json rules = Json::array();
  rules.push_back(either(applies, negated(there)));
  if (first.rules.required) {
    // `required` alone would do, but the API server reports the alternative that fits best: with
    // `applies`, that is the one that names the missing field.
    Json both = applies;
    rules.push_back(either(negated(applies), both.set("required", *there.find("required"))));
  }
  schema.set("allOf", std::move(rules));
}

void add_case_rules_of(Json& schema, std::string_view decider, const std::vector<Case>& cases,
                       std::size_t field) {
  const std::string value = "self." + std::string(decider);
  const CaseField& first = cases.front().fields[field];
  const std::string name(first.name);
  const std::string applies = cel_is_one_of(value, values_where_it_applies(cases, field));
  add_rule(schema, {"!has(self." + name + ") || " + applies,
                    "only makes sense with " + std::string(first.rules.applies_to) + "; remove it",
                    "." + name, Reason::kForbidden});
  if (first.rules.required) {
    add_rule(schema, {"has(self." + name + ") || !(" + applies + ")",
                      "is missing; expected here: " + std::string(first.description), "." + name,
                      Reason::kRequired});
  }
  add_bounds_rules(schema, value, cases, field);
}

}  // namespace

void add_case_rules(Json& schema, std::string_view decider, const std::vector<Case>& cases) {
  for (std::size_t i = 0; i < cases.front().fields.size(); ++i) {
    const Json* field = schema.find("properties")->find(cases.front().fields[i].name);
    if (seen_by_rules(*field)) {
      add_case_rules_of(schema, decider, cases, i);
    } else {
      add_case_schemas(schema, decider, cases, i);
    }
  }
}

void SchemaVisitor::constant(std::string_view name, std::string_view text) {
  const std::string description = "Always " + std::string(text) + ".";
  properties_.set(name, Json::object({{"description", description}, {"type", "string"}}));
}

void SchemaVisitor::add(std::string_view name, Json schema, std::string description,
                        const FieldRules& rules, Json default_value) {
  if (const std::string hint = form_hint(rules); !hint.empty()) description += ' ' + hint;
  const bool is_conditional = !rules.applies_to.empty();
  if (is_conditional) description += " Only with " + std::string(rules.applies_to) + '.';
  // kubectl explain does not show defaults. That of an object consists of its fields' defaults,
  // which their own descriptions give.
  if (!default_value.is_null() && !default_value.is_object()) {
    description += " Default: ";
    description += default_value.is_string() ? default_value.as_string() : default_value.dump();
    description += '.';
  }
  // The API server would set a default even if the field does not apply.
  if (is_conditional) default_value = Json();
  if (!is_conditional && rules.required) required_.push_back(name);
  Json described = Json::object({{"description", std::move(description)}});
  for (auto& [key, value] : schema.as_object()) described.set(key, std::move(value));
  if (!default_value.is_null()) described.set("default", std::move(default_value));
  properties_.set(name, std::move(described));
}

Json SchemaVisitor::defaults_within(const Json& schema) {
  Json defaults = Json::object();
  for (const auto& [name, field] : schema.find("properties")->as_object()) {
    if (const Json* value = field.find("default")) defaults.set(name, *value);
  }
  return defaults;
}

Json SchemaVisitor::take() && {
  Json schema = Json::object({{"type", "object"}});
  if (!required_.as_array().empty()) schema.set("required", std::move(required_));
  schema.set("properties", std::move(properties_));
  return schema;
}

}  // namespace fettle::crds
