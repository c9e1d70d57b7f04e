// Processes as /proc shows them: descendants, memory, the trial they belong to.
//
// Everything here may be outdated the moment it is returned: processes come and go. Callers repeat
// until nothing is left. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fettle::local {

// All descendants of `root`, itself excluded; at most kMaxDescendants (a fork bomb has no end).
inline constexpr std::size_t kMaxDescendants = 1 << 16;
std::vector<pid_t> descendants(pid_t root);
// The same, read until two readings agree (or a few times, in a tree that keeps forking). One
// reading may miss a process whose parent dies meanwhile: it has become a child of `root`, or of
// another subreaper, whose children were read before.
std::vector<pid_t> settled_descendants(pid_t root);
std::vector<pid_t> children(pid_t parent);
// As descendants(), from a list of the children of each process: for kernels that do not keep such
// lists.
std::vector<pid_t> descendants_among(pid_t root,
                                     const std::map<pid_t, std::vector<pid_t>>& children);

// Memory of all descendants of `root` in bytes that the kernel cannot take back: anonymous and
// shared, as a control group counts it when it kills. Pages of mapped files are not counted. Pages
// that forked processes share are counted once for each; if only that exceeds `limit` (> 0), they
// are counted exactly.
std::int64_t tree_memory(pid_t root, std::int64_t limit);

// Sends `signal` to every descendant of `root`, and to every process group they lead.
// Returns how many there were.
std::size_t signal_tree(pid_t root, int signal);

// Kills the leftovers of trials whose runner, supervisor and guards were all killed, until none is
// left (or for kSweepRounds rounds): processes whose environment has FETTLE_TRIAL naming a file
// under `study_directory` and FETTLE_POD_UID, and that have no terminal. Spares this process and
// its ancestors.
void sweep(const std::string& study_directory);

}  // namespace fettle::local
