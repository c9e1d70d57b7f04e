#include "api/fields/field_reader.h"

#include <algorithm>
#include <cmath>

#include "api/fields/label_syntax.h"
#include "api/fields/nearest.h"
#include "api/fields/quantity.h"
#include "api/fields/timestamp.h"
#include "base/utf8.h"

namespace fettle::api {
namespace {

void fail(const ReadContext& context, const std::string& expected) {
  context.errors.add(context.path, "found " + describe(context.value) + ", expected " + expected);
}

bool within(double value, const ReadContext& context) {
  const FieldRules& rules = context.rules;
  if (!std::isfinite(value)) return false;
  if (!context.errors.checks_bounds()) return true;
  if (rules.above_min ? value <= rules.min : value < rules.min) return false;
  return rules.below_max ? value < rules.max : value <= rules.max;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-';
  });
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

bool is_metric_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || is_digit(c) ||
           std::string_view("_./:@%-").find(c) != std::string_view::npos;
  });
}

// Environment variables cannot carry NUL, nor JSON invalid UTF-8.
bool is_plain(std::string_view text) { return text.find('\0') == text.npos && is_utf8(text); }

bool text_fits(std::string_view text, const FieldRules& rules) {
  if (text.size() < rules.min_text || text.size() > rules.max_text) return false;
  if (!rules.choices.empty()) {
    return std::ranges::find(rules.choices, text) != rules.choices.end();
  }
  if (text.empty()) return true;  // an empty text counts as left out
  switch (rules.form) {
    case Form::kDnsLabel:
      return is_dns_label(text);
    case Form::kName:
      return is_name(text);
    case Form::kVariableName:
      return is_variable_name(text);
    case Form::kMetricName:
      return is_metric_name(text);
    case Form::kLabelKey:
      return is_label_key(text);
    case Form::kLabelValue:
      return is_label_value(text);
    case Form::kDnsSubdomain:
      return is_dns_subdomain(text);
    default:
      return is_plain(text);
  }
}

// Without checks of bounds (kIgnoredWithBounds), any plain text is accepted, except among choices:
// an unknown name has no meaning here.
bool text_is_taken(std::string_view text, const ReadContext& context) {
  const bool is_free = !context.errors.checks_bounds() && context.rules.choices.empty();
  return is_free ? is_plain(text) : text_fits(text, context.rules);
}

// Reads the text of a duration or quantity.
std::optional<double> read_notation(const ReadContext& context) {
  if (!context.value.is_string()) return std::nullopt;
  if (context.rules.form != Form::kDuration && context.rules.form != Form::kQuantity) {
    return std::nullopt;
  }
  const bool duration = context.rules.form == Form::kDuration;
  const std::string& text = context.value.as_string();
  const Result<double> value = duration ? parse_duration(text) : parse_quantity(text);
  return value ? std::optional<double>(*value) : std::nullopt;
}

// Parts of a second or a byte need a unit ("500ms"): the cluster's schema has a type for whole
// numbers and texts, but none for all numbers and texts. A quantity that may be below 0 is the
// limit of a metric, any number (crds/values.cpp).
bool needs_whole_number(const FieldRules& rules) {
  return rules.form == Form::kDuration || (rules.form == Form::kQuantity && rules.min >= 0);
}

bool check_size(const ReadContext& context, std::size_t size, std::string_view what) {
  const FieldRules& rules = context.rules;
  if (size >= rules.min_size && size <= rules.max_size) return true;
  if (!context.errors.checks_bounds()) return true;
  const std::string bounds = rules.min_size == 0 ? "at most " + std::to_string(rules.max_size)
                                                 : std::to_string(rules.min_size) + " to " +
                                                       std::to_string(rules.max_size);
  context.errors.add(context.path, "found " + std::to_string(size) + ' ' + std::string(what) +
                                       ", expected " + bounds);
  return false;
}

void check_key(const std::string& key, const FieldPath& path, const ReadContext& context) {
  const FieldRules& rules = context.rules;
  if (!context.errors.checks_bounds()) return;
  if (rules.form == Form::kAnyNumber && key.size() > rules.max_text) {  // a map of numbers
    context.errors.add(path, "found the key " + describe(Json(key)) + ", expected " +
                                 expected_text(text(0, rules.max_text)));
  }
  if (!context.rules.label_keys || is_label_key(key)) return;
  context.errors.add(path, "found the key " + describe(Json(key)) + ", expected " +
                               expected_text(FieldRules{}.as(Form::kLabelKey)));
}

template <class T>
void read_entries(const ReadContext& context, std::map<std::string, T>& out) {
  if (!check_map(context)) return;
  const Json::Object& members = context.value.as_object();
  if (!check_size(context, members.size(), "entries")) return;
  for (const auto& [key, value] : members) {
    const FieldPath path = context.path.member(key);
    check_key(key, path, context);
    read_value(ReadContext{value, path, context.rules, context.errors}, out[key]);
  }
}

}  // namespace

void read_value(const ReadContext& context, bool& out) {
  if (context.rules.form == Form::kConditionStatus) {
    if (const auto index = read_choice(context, {"False", "True"})) out = *index == 1;
    return;
  }
  if (!context.value.is_boolean()) return fail(context, "true or false");
  out = context.value.as_boolean();
}

void read_value(const ReadContext& context, std::int64_t& out) {
  const Json& value = context.value;
  const FieldRules& rules = context.rules;
  if (rules.form == Form::kTimestamp) {
    const auto time = value.is_string() ? parse_timestamp(value.as_string()) : std::nullopt;
    if (!time) return fail(context, "a time such as 2026-01-31T12:00:00Z");
    out = *time;
    return;
  }
  if (rules.or_auto && value == Json("auto")) {
    out = static_cast<std::int64_t>(kAutoAmount);
    return;
  }
  const bool fits = value.is_integer() && within(value.as_double(), context) &&
                    (!rules.odd || !context.errors.checks_bounds() || value.as_integer() % 2 != 0);
  if (!fits) return fail(context, expected_number(rules, true));
  out = value.as_integer();
}

void read_value(const ReadContext& context, double& out) {
  const Json& value = context.value;
  if (context.rules.form == Form::kAnyNumber && value.is_null()) {  // JSON has no NaN
    out = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (context.rules.or_auto && value == Json("auto")) {
    out = kAutoAmount;
    return;
  }
  // Half a second is the text "500ms", not 0.5.
  const bool plain = needs_whole_number(context.rules) ? value.is_integer() : value.is_number();
  const std::optional<double> number =
      plain ? std::optional<double>(value.as_double()) : read_notation(context);
  if (!number || !within(*number, context)) {
    return fail(context, expected_number(context.rules, false));
  }
  out = *number;
}

void read_value(const ReadContext& context, std::string& out) {
  if (!context.value.is_string() || !text_is_taken(context.value.as_string(), context)) {
    std::string hint;
    if (context.value.is_string() && !context.rules.choices.empty()) {
      hint = did_you_mean(context.value.as_string(), context.rules.choices);
    } else if (context.value.is_boolean()) {
      hint =
          "; if it is meant as a text, write it in quotes: YAML takes y, yes, on, n, no and off "
          "for true and false";
    } else if (context.value.is_number()) {
      hint = "; if it is meant as a text, write it in quotes";
    }
    return fail(context, expected_text(context.rules) + hint);
  }
  out = context.value.as_string();
}

void read_value(const ReadContext& context, Json& out) {
  const Json& value = context.value;
  if (context.rules.form == Form::kObject && !value.is_object()) return fail(context, "a map");
  if (context.rules.form == Form::kScalar) {
    if (value.is_array() || value.is_object() || value.is_null()) {
      return fail(context, "a text, a number, true or false");
    }
    if (value.is_number() && !std::isfinite(value.as_double())) {
      return fail(context, "a finite number");
    }
    if (value.is_string() && !text_is_taken(value.as_string(), context)) {
      return fail(context, expected_text(context.rules));
    }
  }
  out = value;
}

void read_value(const ReadContext& context, std::map<std::string, std::string>& out) {
  read_entries(context, out);
}

void read_value(const ReadContext& context, std::map<std::string, double>& out) {
  read_entries(context, out);
}

std::optional<std::size_t> read_choice(const ReadContext& context,
                                       const std::vector<std::string_view>& names) {
  if (context.value.is_string()) {
    const auto found = std::ranges::find(names, context.value.as_string());
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  const std::string hint =
      context.value.is_string() ? did_you_mean(context.value.as_string(), names) : std::string();
  fail(context, join_names(names) + hint);
  return std::nullopt;
}

bool check_list(const ReadContext& context) {
  if (!context.value.is_array()) {
    fail(context, "a list");
    return false;
  }
  return check_size(context, context.value.as_array().size(), "entries");
}

bool check_map(const ReadContext& context) {
  if (context.value.is_object()) return true;
  fail(context, "a map of fields");
  return false;
}

void FieldReader::constant(std::string_view name, std::string_view text) {
  known_.push_back(name);
  const Json* value = object_.find(name);
  if (value != nullptr && value->is_string() && value->as_string() == text) return;
  const FieldPath path = path_.member(name);
  const std::string expected = "expected " + std::string(text);
  errors_.add(path, value == nullptr ? "is missing; " + expected
                                     : "found " + describe(*value) + ", " + expected);
}

const Json* FieldReader::present(std::string_view name, std::string_view description,
                                 const FieldRules& rules) {
  known_.push_back(name);
  const Json* value = object_.find(name);
  // A store may hold a field that applied by the rules of another version.
  const bool applies = rules.applies || !errors_.checks_bounds();
  if (value != nullptr && !value->is_null() && applies) return value;
  // If an earlier field is wrong, it is unknown whether this one applies.
  if (!rules.applies_to.empty() && !clean()) return nullptr;
  if (value == nullptr || value->is_null()) {
    if (rules.required && rules.applies) {
      // Later fields may depend on one that is always required, such as type: if missing, it counts
      // as unreadable.
      misplaced_ += rules.applies_to.empty() ? 0 : 1;
      errors_.add(path_.member(name), "is missing; expected here: " + std::string(description));
    }
    return nullptr;
  }
  ++misplaced_;
  errors_.add(path_.member(name),
              "only makes sense with " + std::string(rules.applies_to) + "; remove it");
  return nullptr;
}

void FieldReader::finish() {
  if (errors_.unknown_fields() != UnknownFields::kMistakes) return;
  for (const auto& [key, value] : object_.as_object()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    std::string hint = did_you_mean(key, known_);
    if (hint.empty()) hint = "; known here: " + join_names(known_, "and");
    errors_.add(path_.member(key), "unknown field" + hint);
  }
}

}  // namespace fettle::api
