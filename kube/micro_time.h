// Times as Kubernetes' MicroTime wants them: RFC 3339 with exactly six digits of a second. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace fettle::kube {

// "2026-01-31T12:00:00.250000Z".
std::string format_micro_time(std::int64_t unix_ms);

}  // namespace fettle::kube
