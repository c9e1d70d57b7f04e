// Durations and quantities as people write them, both ways.
//
// A duration is a number of seconds or a sum of parts: "90s", "10m", "1h30m", "2d", "500ms".
// A quantity is a number with an optional suffix as in Kubernetes: "20Gi", "500M", "250m" (milli).
// format_* and parse_* are inverse: parse(format(x)) == x for every finite x.
// Pure functions; usable from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fettle::api {

// The value of a quantity that is written "auto": the code that needs it chooses the amount. No
// field that accepts auto accepts 0.
inline constexpr double kAutoAmount = 0;

// Parses seconds, >= 0. Errors quote the text and list the accepted forms.
Result<double> parse_duration(std::string_view text);
// "1h30m", "90s" -> "1m30s", "0.25s"; the fewest parts that keep the value.
std::string format_duration(double seconds);

Result<double> parse_quantity(std::string_view text);
// "20Gi" if that is exact, else plain digits: "1500", "0.5".
std::string format_quantity(double value);

}  // namespace fettle::api
