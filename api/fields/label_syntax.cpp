#include "api/fields/label_syntax.h"

#include <algorithm>

namespace fettle::api {
namespace {

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alphanumeric(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

// Whether `text` is a name, not empty: a label's, or the last part of its key.
bool is_label_name(std::string_view text) { return !text.empty() && is_label_value(text); }

}  // namespace

bool is_label_value(std::string_view text) {
  if (text.empty()) return true;
  return text.size() <= kLongestLabelName && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) && std::ranges::all_of(text, [](char c) {
           return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

bool is_label_key(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_label_name(text);
  return is_dns_subdomain(text.substr(0, slash)) && is_label_name(text.substr(slash + 1));
}

bool is_dns_subdomain(std::string_view text) {
  if (text.size() > kLongestDomain) return false;
  for (std::size_t dot; (dot = text.find('.')) != std::string_view::npos;) {
    if (!is_dns_label(text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
  }
  return is_dns_label(text);
}

bool is_dns_label(std::string_view text) {
  return !text.empty() && is_lower_or_digit(text.front()) && is_lower_or_digit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

}  // namespace fettle::api
