// Times as Kubernetes writes them: RFC 3339 in UTC. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fettle::api {

// Unix milliseconds as "2026-01-31T12:00:00.250Z"; whole seconds without the fraction.
std::string format_timestamp(std::int64_t unix_ms);
// Absent for anything but a UTC time of that form; digits after the millisecond are dropped.
std::optional<std::int64_t> parse_timestamp(std::string_view text);

}  // namespace fettle::api
