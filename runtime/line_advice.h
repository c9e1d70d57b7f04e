// Advice for the author of a program whose output is not JSON: the expression that reads it.
// Pure; usable from any thread. Compiles a few expressions, so it is meant for the one line that is
// shown.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace fettle::runtime {

// The member of `names` that differs from `name` only in upper and lower case; "" if none does.
std::string same_but_for_case(std::string_view name, const std::set<std::string>& names);

// How to read a metric of `wanted` from this line, as the end of a sentence about the line: which
// spec.trial.metrics reads it, and which name to give the metric. "" if no common form fits.
std::string advice_for(std::string_view line, const std::set<std::string>& wanted);

}  // namespace fettle::runtime
