// How many processes the kernel has killed because memory ran out. Usable from any thread.
#pragma once

#include <cstdint>
#include <string>

namespace fettle::machine {

// Since the machine started, for want of memory of the whole machine or of one cgroup.
// 0 where the kernel does not count them (before Linux 4.13). `root` replaces "/" in tests.
std::int64_t oom_kills(const std::string& root = "");

}  // namespace fettle::machine
