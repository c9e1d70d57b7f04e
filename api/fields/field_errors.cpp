#include "api/fields/field_errors.h"

#include <algorithm>
#include <utility>

namespace fettle::api {

std::string_view FieldErrors::spelt(std::string_view name) {
  if (spelling_ == Spelling::kCamelCase) return name;
  const auto [entry, is_new] = spelt_.try_emplace(name);
  if (!is_new) return entry->second;
  for (const char c : name) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    if (is_capital) entry->second += '_';
    entry->second += is_capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return entry->second;
}

void FieldErrors::add(std::string path, std::string message) {
  errors_.push_back({std::move(path), std::move(message)});
}

bool FieldErrors::any_under(const FieldPath& path) const {
  const std::string prefix = path.str();
  return std::ranges::any_of(errors_, [&](const FieldError& error) {
    if (error.path.compare(0, prefix.size(), prefix) != 0) return false;
    if (prefix.empty() || error.path.size() == prefix.size()) return true;
    const char next = error.path[prefix.size()];
    return next == '.' || next == '[';
  });
}

std::vector<FieldError> FieldErrors::take() && {
  if (errors_.size() > kMaxErrors) {
    const std::size_t more = errors_.size() - kMaxErrors;
    errors_.resize(kMaxErrors);
    errors_.push_back({"", "and " + std::to_string(more) + " more errors"});
  }
  return std::move(errors_);
}

std::string to_string(const std::vector<FieldError>& errors) {
  std::string out;
  for (const FieldError& error : errors) {
    if (!out.empty()) out += '\n';
    if (!error.path.empty()) out += error.path + ": ";
    out += error.message;
  }
  return out;
}

}  // namespace fettle::api
