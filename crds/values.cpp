#include "crds/values.h"

#include <cmath>
#include <utility>

#include "api/fields/label_syntax.h"

namespace fettle::crds {
namespace {

using api::FieldRules;
using api::Form;

constexpr std::int64_t kLongestNotation = 64;   // characters of a duration or quantity
constexpr std::int64_t kLongestTimestamp = 64;  // characters

// Notations as read by api/fields/quantity.h.
const std::string kNumber = R"(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?)";
const std::string kDuration = "^(" + kNumber + "|(" + kNumber + "(d|h|ms|m|s))+)$";
const std::string kQuantity = "^-?" + kNumber + "(Ei|Pi|Ti|Gi|Mi|Ki|E|P|T|G|M|k|m|u|n)?$";
// The format date-time would accept lists, and offsets from UTC.
constexpr const char* kTimestamp = R"(^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))"
                                   R"(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?Z$)";
// Environment variables cannot carry NUL.
constexpr const char* kNoNul = R"(^[^\x00]*$)";

// Returns CEL for the seconds of a duration's text, whose form has been checked. ms stands before m
// and s: alternatives of the expression, and endings of an item, are tried in order.
std::string cel_seconds(const std::string& text) {
  const auto part = [](const char* unit, const char* seconds) {
    const std::string number = "double(p.replace('" + std::string(unit) + "', ''))";
    return "p.endsWith('" + std::string(unit) + "') ? " + number + " * " + seconds + " : ";
  };
  return "(" + text + ".matches('[a-z]$') ? " + text +
         ".findAll('[0-9.eE+-]+(d|h|ms|m|s)').map(p, " + part("d", "86400.0") +
         part("h", "3600.0") + part("ms", "0.001") + part("m", "60.0") +
         "double(p.replace('s', ''))).sum() : double(" + text + "))";
}

std::string_view name_of(Reason reason) {
  switch (reason) {
    case Reason::kForbidden:
      return "FieldValueForbidden";
    case Reason::kRequired:
      return "FieldValueRequired";
    case Reason::kInvalid:
      break;
  }
  return "FieldValueInvalid";
}

// The API server compares whole numbers with bounds as int64, which larger bounds overflow.
bool fits_int64(double bound) { return std::fabs(bound) <= 0x1p62; }

void set_bounds(Json& schema, const FieldRules& rules) {
  if (fits_int64(rules.min)) {
    schema.set("minimum", rules.min);
    if (rules.above_min) schema.set("exclusiveMinimum", true);
  }
  if (fits_int64(rules.max)) {
    schema.set("maximum", rules.max);
    if (rules.below_max) schema.set("exclusiveMaximum", true);
  }
}

// Returns CEL for the limit that kLabelKeyPattern leaves open.
std::string cel_short_domain(const std::string& key) {
  return key + ".indexOf('/') <= " + std::to_string(api::kLongestDomain);
}

Json typed(const char* type) { return Json::object({{"type", type}}); }

// A value without a type that is neither a list nor a map: the API server has types for whole
// numbers or texts (int-or-string), but not for 0.5 or a text. `refused`: values that it may not
// be.
Json untyped(Json::Array refused) {
  return Json::object({{"x-kubernetes-preserve-unknown-fields", true},
                       {"maxItems", 0},
                       {"maxProperties", 0},
                       {"not", Json::object({{"enum", Json(std::move(refused))}})}});
}

Json duration_schema(const FieldRules& rules) {
  Json schema =
      Json::object({{"x-kubernetes-int-or-string", true}, {"maxLength", kLongestNotation}});
  const std::string whole = cel_bounds("self", rules, true);  // whole seconds
  // CEL has no variables: a list of one gives the sum a name, s.
  const std::string seconds =
      "[" + cel_seconds("self") + "].all(s, " + cel_bounds("s", rules, false) + ")";
  add_rule(schema, {"type(self) == int ? " + whole + " : self.matches(" + cel_text(kDuration) +
                        ") && " + seconds,
                    "expected " + api::expected_number(rules, false), "", Reason::kInvalid});
  return schema;
}

// Amounts of memory are whole numbers of bytes, which CEL can read; bounds of a metric may be any
// number, which CEL cannot.
Json quantity_schema(const FieldRules& rules) {
  if (rules.min < 0) {
    Json schema = untyped(/*refused=*/{true, false, Json::object(), Json::array()});
    set_bounds(schema, rules);
    return schema.set("maxLength", kLongestNotation).set("pattern", kQuantity);
  }
  Json schema =
      Json::object({{"x-kubernetes-int-or-string", true}, {"maxLength", kLongestNotation}});
  const auto limit = [](double value) { return "quantity('" + api::describe(value) + "')"; };
  std::string amount = "quantity(self).compareTo(" + limit(rules.min) + ")" +
                       (rules.above_min ? " > 0" : " >= 0") + " && quantity(self).compareTo(" +
                       limit(rules.max) + ")" + (rules.below_max ? " < 0" : " <= 0");
  add_rule(schema,
           {"type(self) == int ? " + cel_bounds("self", rules, true) + " : " +
                (rules.or_auto ? "self == 'auto' || " : "") + "isQuantity(self) && " + amount,
            "expected " + api::expected_number(rules, false), "", Reason::kInvalid});
  return schema;
}

}  // namespace

void add_rule(Json& schema, const Rule& rule) {
  Json entry = Json::object({{"rule", rule.cel}, {"message", rule.message}});
  if (!rule.field.empty()) entry.set("fieldPath", rule.field);
  if (rule.reason != Reason::kInvalid) entry.set("reason", name_of(rule.reason));
  constexpr const char* kKey = "x-kubernetes-validations";
  if (schema.find(kKey) == nullptr) schema.set(kKey, Json::array());
  schema.find(kKey)->push_back(std::move(entry));
}

Json boolean_schema(const FieldRules& rules) {
  if (rules.form != Form::kConditionStatus) return typed("boolean");
  return typed("string").set("enum", Json::Array{"True", "False"});
}

Json whole_schema(const FieldRules& rules) {
  if (rules.form == Form::kTimestamp) {  // milliseconds in a struct, RFC 3339 in a document
    return typed("string").set("pattern", kTimestamp).set("maxLength", kLongestTimestamp);
  }
  if (rules.or_auto) {
    Json schema =
        Json::object({{"x-kubernetes-int-or-string", true}, {"maxLength", kLongestNotation}});
    add_rule(schema,
             {"type(self) == int ? " + cel_bounds("self", rules, true) + " : self == 'auto'",
              "expected " + api::expected_number(rules, true), "", Reason::kInvalid});
    return schema;
  }
  Json schema = typed("integer").set("format", "int64");
  set_bounds(schema, rules);
  if (rules.odd) {
    add_rule(schema, {"self % 2 == 1", "expected " + api::expected_number(rules, true), "",
                      Reason::kInvalid});
  }
  return schema;
}

Json number_schema(const FieldRules& rules) {
  if (rules.form == Form::kDuration) return duration_schema(rules);
  if (rules.form == Form::kQuantity) return quantity_schema(rules);
  Json schema = typed("number").set("format", "double");
  if (rules.form == Form::kAnyNumber) schema.set("nullable", true);
  set_bounds(schema, rules);
  // Bounds that set_bounds leaves out; no field has such a minimum without such a maximum.
  if (std::isfinite(rules.max) && !fits_int64(rules.max)) {
    add_rule(schema, {cel_bounds("self", rules, false),
                      "expected " + api::expected_number(rules, false), "", Reason::kInvalid});
  }
  return schema;
}

Json text_schema(const FieldRules& rules) {
  if (!rules.choices.empty()) return choice_schema(rules.choices);
  Json schema = typed("string");
  if (rules.min_text > 0) schema.set("minLength", static_cast<std::uint64_t>(rules.min_text));
  // This counts characters, max_text counts bytes: the operator refuses longer texts when it reads
  // them.
  schema.set("maxLength", static_cast<std::uint64_t>(rules.max_text));
  switch (rules.form) {
    case Form::kDnsLabel:
      return schema.set("pattern", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
    case Form::kName:
      return schema.set("pattern", "^[A-Za-z][A-Za-z0-9_.-]*$");
    case Form::kVariableName:
      return schema.set("pattern", "^[A-Za-z_][A-Za-z0-9_]*$");
    case Form::kMetricName:
      return schema.set("pattern", "^[A-Za-z0-9_./:@%-]+$");
    case Form::kLabelKey:
      add_rule(schema, {cel_short_domain("self"), "expected " + api::expected_text(rules), "",
                        Reason::kInvalid});
      return schema.set("pattern", api::kLabelKeyPattern);
    case Form::kLabelValue:
      return schema.set("pattern", api::kLabelValuePattern);
    case Form::kDnsSubdomain:
      return schema.set("pattern", api::kDnsSubdomainPattern);
    default:
      return schema.set("pattern", kNoNul);
  }
}

Json choice_schema(std::span<const std::string_view> choices) {
  return typed("string").set("enum", Json::array_of(choices));
}

Json any_schema(const FieldRules& rules) {
  if (rules.form == Form::kObject) {
    return typed("object").set("x-kubernetes-preserve-unknown-fields", true);
  }
  return untyped({Json::object(), Json::array(), Json()})
      .set("maxLength", static_cast<std::uint64_t>(rules.max_text))
      .set("pattern", kNoNul);
}

Json list_schema(Json items, const FieldRules& rules) {
  Json schema = typed("array");
  if (rules.min_size > 0) schema.set("minItems", static_cast<std::uint64_t>(rules.min_size));
  return schema.set("maxItems", static_cast<std::uint64_t>(rules.max_size))
      .set("x-kubernetes-list-type", "atomic")
      .set("items", std::move(items));
}

Json map_schema(Json values, const FieldRules& rules) {
  Json schema = typed("object")
                    .set("maxProperties", static_cast<std::uint64_t>(rules.max_size))
                    .set("additionalProperties", std::move(values));
  if (rules.label_keys) {
    add_rule(schema,
             {"self.all(key, key.matches(" + cel_text(api::kLabelKeyPattern) + ") && " +
                  cel_short_domain("key") + ")",
              "expected each key to be " + api::expected_text(FieldRules{}.as(Form::kLabelKey)), "",
              Reason::kInvalid});
  }
  if (rules.form == Form::kAnyNumber) {  // names and values of metrics; max_text limits the names
    add_rule(schema, {"self.all(key, key.size() <= " + std::to_string(rules.max_text) + ")",
                      "expected each key to be " + api::expected_text(api::text(0, rules.max_text)),
                      "", Reason::kInvalid});
  }
  return schema;
}

std::string form_hint(const FieldRules& rules) {
  switch (rules.form) {
    case Form::kDuration:
      return "A duration such as 90s, 10m, 1h30m or 2d; a whole number counts seconds.";
    case Form::kQuantity:
      return "A number such as 500M or 20Gi.";
    default:
      return rules.odd ? "Odd." : "";
  }
}

std::string cel_text(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

std::string cel_list(std::span<const std::string_view> texts) {
  std::string out = "[";
  for (const std::string_view text : texts) out += (out.size() > 1 ? ", " : "") + cel_text(text);
  return out + ']';
}

std::string cel_number(double value, bool is_whole) {
  std::string out = api::describe(value);
  if (is_whole || out.find_first_of(".e") != std::string::npos) return out;
  return out + ".0";
}

std::string cel_bounds(const std::string& value, const FieldRules& rules, bool is_whole) {
  std::string out = value + (rules.above_min ? " > " : " >= ") + cel_number(rules.min, is_whole) +
                    " && " + value + (rules.below_max ? " < " : " <= ") +
                    cel_number(rules.max, is_whole);
  if (rules.odd) out += " && " + value + " % 2 == 1";
  return out;
}

}  // namespace fettle::crds
