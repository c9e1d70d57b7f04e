// The limits that a container puts on this process: cgroup version 2 (kernel documentation,
// admin-guide/cgroup-v2), as Docker, Kubernetes and systemd use it. Files are read at each call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fettle::machine {

// Absent: there is no limit, or it cannot be read.
struct CgroupLimits {
  std::optional<std::int64_t> memory;  // bytes
  std::optional<double> cores;
};

// The tightest limits from the process's own group up to the root. `root` replaces "/" in tests.
CgroupLimits cgroup_limits(const std::string& root = "");

}  // namespace fettle::machine
