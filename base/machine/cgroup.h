// Limits of a container on this process: cgroup version 2 (kernel documentation,
// admin-guide/cgroup-v2), as used by Docker, Kubernetes and systemd. Files are read at each call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fettle::machine {

// Absent: no limit, or it cannot be read.
struct CgroupLimits {
  std::optional<std::int64_t> memory;  // bytes
  std::optional<double> cores;
};

// The tightest limits from the process's own group up to the root. `root` replaces "/" in tests.
CgroupLimits cgroup_limits(const std::string& root = "");

}  // namespace fettle::machine
