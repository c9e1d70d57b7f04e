// Counts processes that the kernel killed because memory ran out. Usable from any thread.
#pragma once

#include <cstdint>
#include <string>

namespace fettle::machine {

// Kills since the machine started, for lack of memory in the whole machine or in one cgroup.
// 0 if the kernel does not count them (before Linux 4.13). `root` replaces "/" in tests.
std::int64_t oom_kills(const std::string& root = "");

}  // namespace fettle::machine
