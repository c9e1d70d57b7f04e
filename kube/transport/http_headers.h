// HTTP headers that a Kubernetes client reads and writes. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fettle::kube {

// Whether `value` is a valid header value: printable ASCII and spaces. A line break would start
// another header (cpprestsdk does not check).
bool is_header_value(std::string_view value);

// Returns the texts of a Warning header, which may hold several (RFC 7234, 5.5): `299 - "first",
// 299 - "second"`. Skips malformed parts.
std::vector<std::string> read_warnings(std::string_view header);

// Returns the seconds of a Retry-After header, at most a day; absent for a date, which API servers
// do not send.
std::optional<std::chrono::seconds> read_retry_after(std::string_view header);

// Returns the Unix milliseconds of a Date header in the form required of servers (RFC 9110, 5.6.7):
// "Sun, 06 Nov 1994 08:49:37 GMT". Does not check the name of the day.
std::optional<std::int64_t> read_date(std::string_view header);

}  // namespace fettle::kube
