#include "runtime/local/process/process_tree.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/file.h"
#include "runtime/local/process/proc_table.h"

namespace fettle::local {
namespace {

constexpr int kMostReadings = 10;  // of settled_descendants()
constexpr int kSweepRounds = 100;
constexpr auto kSweepInterval = std::chrono::milliseconds(20);

std::string proc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// Children belong to the thread that forked them, so each thread has to be asked.
void add_children(pid_t parent, std::vector<pid_t>& out) {
  for (const pid_t thread : numbered_entries(proc(parent, "task"))) {
    const auto text = read_file(proc(parent, "task/") + std::to_string(thread) + "/children");
    if (!text.ok()) continue;
    for (const std::int64_t child : numbers_in(*text)) {
      if (out.size() < kMaxDescendants) out.push_back(static_cast<pid_t>(child));
    }
  }
}

bool lists_children() {
  static const bool kLists = has_children_lists();
  return kLists;
}

// The bytes in the line "<name>: <n> kB"; absent without such a line.
std::optional<std::int64_t> bytes_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + ":");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t end = text.find('\n', at + 1);
  const auto kibibytes = numbers_in(std::string_view(text).substr(at, end - at));
  if (kibibytes.empty()) return std::nullopt;
  return kibibytes[0] * 1024;
}

std::int64_t resident_memory(pid_t pid) {
  const auto text = read_file(proc(pid, "status"));
  if (!text.ok()) return 0;
  return bytes_of(*text, "RssAnon").value_or(0) + bytes_of(*text, "RssShmem").value_or(0);
}

// Memory with shared pages divided among the processes that share them; slower to compute than
// resident memory.
std::int64_t proportional_memory(pid_t pid) {
  const auto text = read_file(proc(pid, "smaps_rollup"));
  if (!text.ok()) return 0;
  const auto anonymous = bytes_of(*text, "Pss_Anon");
  if (!anonymous) return resident_memory(pid);  // before Linux 5.3
  return *anonymous + bytes_of(*text, "Pss_Shmem").value_or(0);
}

std::vector<pid_t> ancestors_and_self() {
  std::vector<pid_t> line = {::getpid()};
  while (line.back() > 1 && line.size() < 64) {
    const std::optional<Process> process = inspect(line.back());
    if (!process) break;
    line.push_back(process->parent);
  }
  return line;
}

bool has_entry(const std::string& environment, const std::string& begin) {
  return environment.rfind(begin, 0) == 0 || environment.find('\0' + begin) != std::string::npos;
}

// A person who runs a trial by hand sets FETTLE_TRIAL, but hardly FETTLE_POD_UID, and sits at a
// terminal, which no process of a trial has.
bool is_stray(pid_t pid, const std::string& study_directory) {
  const auto environment = read_file(proc(pid, "environ"));
  return environment.ok() && has_entry(*environment, "FETTLE_TRIAL=" + study_directory + "/") &&
         has_entry(*environment, "FETTLE_POD_UID=") && terminal_of(pid) == 0;
}

// Kills the process if it is a stray. The pidfd is opened before anything is read about it, so a
// new process that reuses the number is never killed. Returns false if it is not ours.
bool kill_stray(pid_t pid, const std::string& study_directory) {
  // glibc 2.36 declares pidfd_open() and its like without C linkage.
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  const bool unsupported = process < 0 && errno == ENOSYS;
  if (process < 0 && !unsupported) return false;
  const bool stray = is_stray(pid, study_directory);
  if (stray && unsupported) ::kill(pid, SIGKILL);
  if (stray && !unsupported) ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
  if (process >= 0) ::close(process);
  return stray;
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  if (!lists_children()) return descendants_among(root, children_by_scan());
  std::vector<pid_t> found = children(root);
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i], found);  // breadth first
  return found;
}

std::vector<pid_t> settled_descendants(pid_t root) {
  std::vector<pid_t> found = descendants(root);
  for (int reading = 1; reading < kMostReadings; ++reading) {
    std::vector<pid_t> again = descendants(root);
    if (again == found) break;
    found = std::move(again);
  }
  return found;
}

std::vector<pid_t> descendants_among(pid_t root,
                                     const std::map<pid_t, std::vector<pid_t>>& children) {
  std::vector<pid_t> found;
  const auto add = [&](pid_t parent) {
    const auto entry = children.find(parent);
    // The children of a process are added whole or, over the limit, not at all.
    if (entry == children.end() || found.size() + entry->second.size() > kMaxDescendants) return;
    found.insert(found.end(), entry->second.begin(), entry->second.end());
  };
  add(root);
  for (std::size_t i = 0; i < found.size(); ++i) add(found[i]);
  return found;
}

std::vector<pid_t> children(pid_t parent) {
  if (!lists_children()) return children_by_scan()[parent];
  std::vector<pid_t> found;
  add_children(parent, found);
  return found;
}

std::int64_t tree_memory(pid_t root, std::int64_t limit) {
  const std::vector<pid_t> tree = descendants(root);
  std::int64_t bytes = 0;
  for (const pid_t pid : tree) bytes += resident_memory(pid);
  if (limit <= 0 || bytes <= limit || tree.size() < 2) return bytes;
  bytes = 0;
  for (const pid_t pid : tree) bytes += proportional_memory(pid);
  return bytes;
}

std::size_t signal_tree(pid_t root, int signal) {
  const std::vector<pid_t> tree = descendants(root);
  for (const pid_t pid : tree) {
    // A group is signalled as a whole, so its members cannot outrun the signal by forking.
    if (::getpgid(pid) == pid) ::kill(-pid, signal);
  }
  for (const pid_t pid : tree) {
    if (::getpgid(pid) != pid) ::kill(pid, signal);
  }
  return tree.size();
}

void sweep(const std::string& study_directory) {
  const std::vector<pid_t> spared = ancestors_and_self();
  // In rounds, because a process may fork just before it is killed.
  for (int round = 0; round < kSweepRounds; ++round) {
    bool found = false;
    for (const pid_t pid : numbered_entries(kProc)) {
      if (std::find(spared.begin(), spared.end(), pid) != spared.end()) continue;
      found = kill_stray(pid, study_directory) || found;
    }
    if (!found) return;
    std::this_thread::sleep_for(kSweepInterval);
  }
}

}  // namespace fettle::local
