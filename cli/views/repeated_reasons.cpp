#include "cli/views/repeated_reasons.h"

#include <cctype>
#include <cstddef>

namespace fettle::cli {
namespace {

constexpr std::size_t kShort = 40;  // bytes; a shorter reason is always written out

}  // namespace

std::string without_numbers(std::string_view reason) {
  std::string key;
  for (const char c : reason) {
    const bool in_number = !key.empty() && key.back() == '#';
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      if (!in_number) key += '#';
    } else if (c != '.' || !in_number) {
      key += c;
    }
  }
  return key;
}

std::string RepeatedReasons::shorten(const std::string& trial, const std::string& reason) {
  std::size_t begin = 0;
  while (reason.size() - begin > kShort) {
    const auto known = trials_.find(without_numbers(std::string_view(reason).substr(begin)));
    if (known != trials_.end() && known->second != trial) {
      return reason.substr(0, begin) + "as " + known->second;
    }
    const std::size_t colon = reason.find(": ", begin);
    if (colon == std::string::npos) break;
    begin = colon + 2;
  }
  if (reason.size() > kShort && !trial.empty()) trials_.emplace(without_numbers(reason), trial);
  return reason;
}

}  // namespace fettle::cli
