#include "api/fields/field.h"

#include <algorithm>

#include "api/fields/quantity.h"
#include "base/utf8.h"

namespace fettle::api {
namespace {

constexpr std::size_t kLongestShown = 40;  // bytes of a string that messages repeat

std::string text_size(const FieldRules& rules, std::string_view unit) {
  if (rules.min_text == 0) return "at most " + std::to_string(rules.max_text) + std::string(unit);
  return std::to_string(rules.min_text) + " to " + std::to_string(rules.max_text) +
         std::string(unit);
}

}  // namespace

std::string FieldPath::str() const {
  if (parent_ == nullptr) return std::string(name_);
  std::string out = parent_->str();
  if (index_ != kNoIndex) return out + '[' + std::to_string(index_) + ']';
  if (!out.empty()) out += '.';
  return out + std::string(name_.substr(0, kLongestShown));
}

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::Type::kNull:
      return "nothing";
    case Json::Type::kBoolean:
      return value.as_boolean() ? "true" : "false";
    case Json::Type::kNumber:
      return describe(value.as_double());
    case Json::Type::kString: {
      const std::string& all = value.as_string();
      if (all.size() <= kLongestShown) return value.dump();
      return "a text of " + std::to_string(all.size()) + " bytes starting with " +
             Json(clean_text(all, kLongestShown)).dump();
    }
    case Json::Type::kArray:
      return "a list of " + std::to_string(value.as_array().size());
    case Json::Type::kObject:
      return "a map";
  }
  return "nothing";
}

std::string describe(double value) {
  if (value != value) return "NaN (not a number)";
  if (value == std::numeric_limits<double>::infinity()) return "Infinity";
  if (value == -std::numeric_limits<double>::infinity()) return "-Infinity";
  return Json(value).dump();
}

std::string expected_number(const FieldRules& rules, bool is_whole) {
  std::string out = is_whole ? (rules.odd ? "an odd whole number" : "a whole number") : "a number";
  if (rules.form == Form::kDuration) out = "a duration such as 90s, 10m or 1h30m";
  if (rules.form == Form::kQuantity) out = "a number such as 0.5, 500M or 20Gi";
  if (rules.or_auto) out = "auto, or " + out;
  // "a number from 1 up", "above 0 and at most 1", "from 0 to below 1", "of at most 9" ...
  const bool has_min = rules.min > -kLargestBound;
  const bool has_max = rules.max < kLargestBound;
  if (!has_min && !has_max && rules.form == Form::kPlain && !is_whole) return "a finite number";
  const auto bound = [&](double value) {
    return rules.form == Form::kDuration ? format_duration(value) : describe(value);
  };
  if (has_min) out += (rules.above_min ? " above " : " from ") + bound(rules.min);
  if (!has_max) return has_min && !rules.above_min ? out + " up" : out;
  if (rules.below_max) {
    const bool between = has_min && !rules.above_min;
    return out + (between ? " to below " : has_min ? " and below " : " below ") + bound(rules.max);
  }
  if (rules.above_min) return out + " and at most " + bound(rules.max);
  return out + (has_min ? " to " : " of at most ") + bound(rules.max);
}

std::string expected_text(const FieldRules& rules) {
  if (!rules.choices.empty()) return join_names(rules.choices);
  switch (rules.form) {
    case Form::kDnsLabel:
      return text_size(rules,
                       " lower-case letters, digits and '-', starting and ending with a "
                       "letter or digit");
    case Form::kName:
      return "a letter, then letters, digits, '_', '.' or '-', " + text_size(rules, " in all");
    case Form::kVariableName:
      return "the name of an environment variable, such as HF_TOKEN: " +
             text_size(rules, " letters, digits and '_', beginning with no digit");
    case Form::kMetricName:
      return text_size(rules, " letters, digits and any of _ . / : @ % -");
    case Form::kLabelKey:
      return "the key of a label, such as zone or nvidia.com/gpu.product: at most 63 letters, "
             "digits, '-', '_' and '.', starting and ending with a letter or digit; a domain and "
             "'/' may come before them";
    case Form::kLabelValue:
      return text_size(rules,
                       " letters, digits, '-', '_' and '.', starting and ending with a letter or "
                       "digit");
    case Form::kDnsSubdomain:
      return text_size(rules,
                       " lower-case letters, digits, '-' and '.', each part starting and ending "
                       "with a letter or digit");
    default:
      return "a text of " + text_size(rules, " bytes");
  }
}

std::string join_names(std::span<const std::string_view> names, std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 < names.size() ? ", " : ' ' + std::string(last) + ' ';
    out += names[i];
  }
  return out;
}

std::string clean_text(std::string_view text, std::size_t max_bytes) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text.substr(at));
    const bool readable = length > 0 && text[at] != '\0';
    const std::string_view piece = readable ? text.substr(at, length) : "?";
    if (out.size() + piece.size() > max_bytes) break;
    out += piece;
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace fettle::api
