#include "api/fields/field_writer.h"

#include <cmath>

#include "api/fields/quantity.h"
#include "api/fields/timestamp.h"

namespace fettle::api {

Json write_value(bool value, const FieldRules& rules) {
  if (rules.form == Form::kConditionStatus) return value ? "True" : "False";
  return value;
}

Json write_value(std::int64_t value, const FieldRules& rules) {
  if (rules.form == Form::kTimestamp) return format_timestamp(value);
  if (rules.or_auto && value == static_cast<std::int64_t>(kAutoAmount)) return "auto";
  return value;
}

Json write_value(double value, const FieldRules& rules) {
  if (rules.or_auto && value == kAutoAmount) return "auto";
  if (rules.form == Form::kDuration) return format_duration(value);
  if (rules.form == Form::kQuantity) return format_quantity(value);
  if (!std::isfinite(value)) return Json();
  return value;
}

Json write_value(const std::string& value, const FieldRules& rules) {
  return rules.cut ? clean_text(value, rules.max_text) : value;
}

Json write_value(const Json& value, const FieldRules& /*rules*/) { return value; }

Json write_value(const std::map<std::string, std::string>& value, const FieldRules& rules) {
  Json out = Json::object();
  for (const auto& [key, item] : value) out.set(key, write_value(item, rules));
  return out;
}

Json write_value(const std::map<std::string, double>& value, const FieldRules& rules) {
  Json out = Json::object();
  for (const auto& [key, item] : value) out.set(key, write_value(item, rules));
  return out;
}

}  // namespace fettle::api
