// Limits on the open files of a process, and the number of runs that they allow.
//
// A shell gives its programs a soft limit of 1,024 for the sake of programs that use select(); the
// hard limit is the system's. Usable from any thread.
#pragma once

#include <cstdint>

namespace fettle::machine {

// Raises the soft limit of this process to the hard one. Returns the former limit, which child
// programs are given back (limit_open_files).
std::int64_t raise_open_files();

// Sets the soft limit of this process, between fork and exec, too.
void limit_open_files(std::int64_t soft);

// The hard limit of this process.
std::int64_t most_open_files();

// Runs that one supervisor can have at once within that number of open files; at least 1. Pure.
std::int64_t runs_within(std::int64_t open_files);
// Workers, each with one run at a time, that need as many open files as `runs`; at least 1. Pure.
std::int64_t workers_instead(std::int64_t runs);

}  // namespace fettle::machine
