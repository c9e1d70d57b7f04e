// Single processes as /proc shows them: the parent, the start time, the reaction to SIGTERM, the
// pipes that are read and written.
//
// `proc` is where the file system is mounted; tests pass a directory with the same layout.
// Everything here may be outdated the moment it is returned. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fettle::local {

inline constexpr const char* kProc = "/proc";

// A process id and the time of the start, in clock ticks since the machine was booted: the id alone
// may be given to another process later.
using ProcessId = std::pair<pid_t, std::uint64_t>;

struct Process {
  ProcessId id;
  pid_t parent = 0;
  enum class OnTerm { kDies, kIgnores, kCatches };
  OnTerm on_term = OnTerm::kDies;
  bool is_shell = false;
  // Ignores SIGQUIT, like the background jobs of a shell without a terminal.
  bool in_background = false;
  std::uint64_t input = 0;             // the pipe that is its standard input; 0: none
  std::vector<std::uint64_t> outputs;  // the pipes that are its standard output and error
};

// Absent for a process that has ended, zombies included.
std::optional<Process> inspect(pid_t pid, const std::string& proc = kProc);

// The controlling terminal of a process; 0: it has none, or there is no such process.
std::int64_t terminal_of(pid_t pid, const std::string& proc = kProc);

// Whether the kernel lists the children of a process (CONFIG_PROC_CHILDREN; some sandboxes do not).
bool has_children_lists(const std::string& proc = kProc);

// The children of each process, found by asking all processes for their parent.
std::map<pid_t, std::vector<pid_t>> children_by_scan(const std::string& proc = kProc);

// Returns "", or the fault of /proc here and its effect on stopping trials.
std::string trouble_with_proc(const std::string& proc = kProc);

// The numbers in `text`, separated by anything. A number of more than 64 bits is left out.
std::vector<std::int64_t> numbers_in(std::string_view text);

// The names in a directory of /proc that are numbers.
std::vector<pid_t> numbered_entries(const std::string& directory);

}  // namespace fettle::local
