#include "api/yaml/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace fettle::api {
namespace {

// Scalars to which YAML 1.1 or 1.2 gives another type.
constexpr std::array<std::string_view, 12> kReserved = {
    "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity"};

bool is_plain_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
         c == '/';
}

// A letter, underscore or slash at the front excludes numbers, dates and YAML's own signs.
bool needs_quotes(const std::string& text) {
  if (text.empty()) return true;
  const char first = text[0];
  if (std::isalpha(static_cast<unsigned char>(first)) == 0 && first != '_' && first != '/') {
    return true;
  }
  if (!std::ranges::all_of(text, is_plain_character)) return true;
  std::string lower;
  for (const char c : text) {
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return std::ranges::find(kReserved, lower) != kReserved.end();
}

std::string string_text(const std::string& text) {
  return needs_quotes(text) ? Json(text).dump() : text;
}

bool is_list_of_objects(const Json& value) {
  return value.is_array() && !value.as_array().empty() && value.as_array()[0].is_object();
}

bool is_filled_object(const Json& value) { return value.is_object() && !value.as_object().empty(); }

std::string list_text(const Json& list, int indent, YamlLists lists) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string text;
  for (const Json& item : list.as_array()) {
    if (lists == YamlLists::kLineEach || !is_filled_object(item)) {
      text += margin + "- " + to_flow_yaml(item) + '\n';
      continue;
    }
    std::string fields = to_yaml(item, indent + 2, lists);
    // The first field is indented by two more: its margin ends in the dash.
    fields[margin.size()] = '-';
    text += fields;
  }
  return text;
}

}  // namespace

std::string to_flow_yaml(const Json& value) {
  if (value.is_string()) return string_text(value.as_string());
  std::string text;
  if (value.is_array()) {
    for (const Json& item : value.as_array()) {
      text += (text.empty() ? "" : ", ") + to_flow_yaml(item);
    }
    return '[' + text + ']';
  }
  if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) {
      text += (text.empty() ? "" : ", ") + string_text(key) + ": " + to_flow_yaml(member);
    }
    return '{' + text + '}';
  }
  return value.dump();
}

std::string to_yaml(const Json& value, int indent, YamlLists lists) {
  if (is_list_of_objects(value)) return list_text(value, indent, lists);
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  if (!is_filled_object(value)) return margin + to_flow_yaml(value) + '\n';
  std::string text;
  for (const auto& [key, member] : value.as_object()) {
    text += margin + string_text(key) + ':';
    const bool nested = is_filled_object(member) || is_list_of_objects(member);
    // A list stands at its key's own indent: its dashes set it apart.
    text += nested ? '\n' + to_yaml(member, indent + (member.is_object() ? 2 : 0), lists)
                   : ' ' + to_flow_yaml(member) + '\n';
  }
  return text;
}

}  // namespace fettle::api
