// Reads the environment: numbers, with errors that name the variable. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fettle::trainer {

using Variable = std::function<const char*(const char*)>;  // std::getenv, or a test's own
using Variables = std::vector<std::pair<std::string, std::string>>;

// The most ranks that train one trial.
inline constexpr std::int64_t kMostRanks = 1024;

// A whole number from `least` to `most`, or `otherwise`, if given and the variable is not set.
Result<std::int64_t> whole_number(const Variable& variable, const char* name, std::int64_t least,
                                  std::int64_t most, std::optional<std::int64_t> otherwise = {});

}  // namespace fettle::trainer
