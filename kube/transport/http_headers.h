// The headers of HTTP that a Kubernetes client reads and writes, as values. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fettle::kube {

// Whether `value` may stand in a header: printable ASCII and spaces. What holds a line break would
// be a header of its own (cpprestsdk sends it as it is).
bool is_header_value(std::string_view value);

// The texts of a Warning header, which may hold several (RFC 7234, 5.5):
// `299 - "first", 299 - "second"`. What is not of that form is left out.
std::vector<std::string> read_warnings(std::string_view header);

// The seconds of a Retry-After header; absent for the other form, a date, which API servers do not
// send. More than a day is a day.
std::optional<std::chrono::seconds> read_retry_after(std::string_view header);

}  // namespace fettle::kube
