#include "runtime/local/process/proc_table.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace fettle::local {
namespace {

constexpr std::array<std::string_view, 10> kShells = {"sh",  "dash", "bash", "ash",  "busybox",
                                                      "zsh", "ksh",  "mksh", "yash", "fish"};

// Positions of numbers in /proc/<pid>/stat, counted after the process's name.
constexpr std::size_t kParent = 0;
constexpr std::size_t kTerminal = 3;
constexpr std::size_t kStartTime = 18;

struct Stat {
  char state = 'X';
  std::vector<std::int64_t> numbers;
};

std::string path_of(const std::string& proc, pid_t pid, const char* file) {
  return proc + "/" + std::to_string(pid) + "/" + file;
}

// Reads "pid (name) state parent ..."; the name may contain anything.
std::optional<Stat> read_stat(const std::string& proc, pid_t pid) {
  const auto text = read_file(path_of(proc, pid, "stat"));
  if (!text.ok()) return std::nullopt;
  const std::size_t close = text->rfind(") ");
  if (close == std::string::npos || close + 2 >= text->size()) return std::nullopt;
  Stat stat{(*text)[close + 2], numbers_in(std::string_view(*text).substr(close))};
  if (stat.numbers.size() <= kStartTime) return std::nullopt;
  return stat;
}

// The set of signals in the line of /proc/<pid>/status that begins with `name`.
std::uint64_t signals_in(const std::string& status, std::string_view name) {
  const std::size_t at = status.find(name);
  if (at == std::string::npos) return 0;
  const char* from = status.data() + at + name.size();
  const char* const end = status.data() + status.size();
  while (from < end && (*from == ' ' || *from == '\t')) ++from;
  std::uint64_t set = 0;
  std::from_chars(from, end, set, 16);
  return set;
}

bool contains(std::uint64_t set, int signal) { return (set >> (signal - 1) & 1) != 0; }

void read_signals(const std::string& status, Process& process) {
  const std::uint64_t ignored = signals_in(status, "\nSigIgn:");
  const std::uint64_t caught = signals_in(status, "\nSigCgt:");
  if (contains(ignored, SIGTERM)) process.on_term = Process::OnTerm::kIgnores;
  if (contains(caught, SIGTERM)) process.on_term = Process::OnTerm::kCatches;
  process.in_background = contains(ignored, SIGQUIT);
}

std::string link_target(const std::string& path) {
  std::error_code code;
  return std::filesystem::read_symlink(path, code).string();
}

// Judges by the executable, because a script's process has the name of the script.
bool is_shell(const std::string& executable) {
  std::string_view name = std::string_view(executable).substr(executable.rfind('/') + 1);
  name = name.substr(0, name.find(' '));  // "... (deleted)"
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

// The number in "pipe:[number]"; 0 for all other files.
std::uint64_t pipe_at(const std::string& descriptor) {
  const std::string target = link_target(descriptor);
  if (target.rfind("pipe:[", 0) != 0) return 0;
  const std::vector<std::int64_t> numbers = numbers_in(target);
  return numbers.empty() ? 0 : static_cast<std::uint64_t>(numbers[0]);
}

}  // namespace

std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::int64_t number = 0;
    const auto [stopped, code] = std::from_chars(at, end, number);
    if (code == std::errc()) numbers.push_back(number);
    // invalid_argument: no number begins here. A number that is too long is skipped as a whole.
    at = code == std::errc::invalid_argument ? at + 1 : stopped;
  }
  return numbers;
}

std::vector<pid_t> numbered_entries(const std::string& directory) {
  std::vector<pid_t> entries;
  DIR* const dir = ::opendir(directory.c_str());
  if (dir == nullptr) return entries;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto [stopped, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code == std::errc() && stopped == name.data() + name.size()) entries.push_back(number);
  }
  ::closedir(dir);
  return entries;
}

std::optional<Process> inspect(pid_t pid, const std::string& proc) {
  const std::optional<Stat> stat = read_stat(proc, pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X') return std::nullopt;
  Process process;
  process.id = {pid, static_cast<std::uint64_t>(stat->numbers[kStartTime])};
  process.parent = static_cast<pid_t>(stat->numbers[kParent]);
  if (const auto status = read_file(path_of(proc, pid, "status")); status.ok()) {
    read_signals(*status, process);
  }
  process.is_shell = is_shell(link_target(path_of(proc, pid, "exe")));
  process.input = pipe_at(path_of(proc, pid, "fd/0"));
  for (const char* file : {"fd/1", "fd/2"}) {
    if (const std::uint64_t pipe = pipe_at(path_of(proc, pid, file)); pipe != 0) {
      process.outputs.push_back(pipe);
    }
  }
  return process;
}

std::int64_t terminal_of(pid_t pid, const std::string& proc) {
  const std::optional<Stat> stat = read_stat(proc, pid);
  return stat ? stat->numbers[kTerminal] : 0;
}

bool has_children_lists(const std::string& proc) {
  return ::access((proc + "/thread-self/children").c_str(), R_OK) == 0;
}

std::map<pid_t, std::vector<pid_t>> children_by_scan(const std::string& proc) {
  std::map<pid_t, std::vector<pid_t>> children;
  for (const pid_t pid : numbered_entries(proc)) {
    const std::optional<Stat> stat = read_stat(proc, pid);
    if (stat) children[static_cast<pid_t>(stat->numbers[kParent])].push_back(pid);
  }
  return children;
}

std::string trouble_with_proc(const std::string& proc) {
  if (has_children_lists(proc)) return "";
  if (read_stat(proc, ::getpid())) {
    return "the kernel does not list the children of a process, so those of trials are looked for "
           "among all processes, which is slower";
  }
  return proc +
         " shows no processes, so of what trials start only their own process groups can be "
         "stopped; mount proc there";
}

}  // namespace fettle::local
