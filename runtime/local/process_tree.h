// What /proc says about processes: descendants, memory, whose they are.
//
// Everything here may be outdated the moment it is returned: processes come and go. Callers repeat
// until nothing is left. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fettle::local {

// All descendants of `root`, itself excluded; at most kMaxDescendants (a fork bomb has no end).
inline constexpr std::size_t kMaxDescendants = 1 << 16;
std::vector<pid_t> descendants(pid_t root);
std::vector<pid_t> children(pid_t parent);

// Memory of all descendants of `root` in bytes that the kernel cannot take back: anonymous and
// shared, as a control group counts it when it kills. Pages of mapped files are not counted. Pages
// that forked processes share are counted once for each; where that alone exceeds `limit` (> 0)
// they are counted exactly.
std::int64_t tree_memory(pid_t root, std::int64_t limit);

// Sends `signal` to every descendant of `root`, and to every process group they lead.
// Returns how many there were.
std::size_t signal_tree(pid_t root, int signal);

// SIGKILLs every process, this one and its ancestors excepted, whose environment has FETTLE_TRIAL
// naming a file under `study_directory`, until there is none left (or kSweepRounds rounds).
// Returns how many were found. For what a runner and its supervisor that were both killed left.
std::size_t sweep(const std::string& study_directory);

}  // namespace fettle::local
