#include "runtime/local/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>

#include "base/file.h"

namespace fettle::local {
namespace {

constexpr int kSweepRounds = 100;
constexpr auto kSweepInterval = std::chrono::milliseconds(20);

std::string proc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// Calls `visit` with every name in a /proc directory that is a number.
void for_each_number(const std::string& directory, const std::function<void(pid_t)>& visit) {
  DIR* const dir = ::opendir(directory.c_str());
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto [stopped, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code == std::errc() && stopped == name.data() + name.size()) visit(number);
  }
  ::closedir(dir);
}

// The numbers in `text`, separated by anything.
std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::int64_t number = 0;
    const auto [stopped, code] = std::from_chars(at, end, number);
    if (code == std::errc()) numbers.push_back(number);
    at = code == std::errc() ? stopped : at + 1;
  }
  return numbers;
}

// Children belong to the thread that forked them, so each thread has to be asked.
void add_children(pid_t parent, std::vector<pid_t>& out) {
  for_each_number(proc(parent, "task"), [&](pid_t thread) {
    const auto text = read_file(proc(parent, "task/") + std::to_string(thread) + "/children");
    if (!text.ok()) return;
    for (const std::int64_t child : numbers_in(*text)) {
      if (out.size() < kMaxDescendants) out.push_back(static_cast<pid_t>(child));
    }
  });
}

// Bytes of the line "<name>: <n> kB"; nothing where there is none.
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

// Shared pages divided among those who share them; slower to compute than resident memory.
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
    const auto stat = read_file(proc(line.back(), "stat"));
    if (!stat.ok()) break;
    // "pid (name) state ppid ...", and the name may hold anything.
    const std::size_t close = stat->rfind(')');
    if (close == std::string::npos) break;
    const auto rest = numbers_in(std::string_view(*stat).substr(close));
    if (rest.empty()) break;
    line.push_back(static_cast<pid_t>(rest[0]));
  }
  return line;
}

bool is_trial_under(pid_t pid, const std::string& study_directory) {
  const auto text = read_file(proc(pid, "environ"));
  if (!text.ok()) return false;
  const std::string wanted = "FETTLE_TRIAL=" + study_directory + "/";
  return text->rfind(wanted, 0) == 0 || text->find('\0' + wanted) != std::string::npos;
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  std::vector<pid_t> found;
  add_children(root, found);
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i], found);
  return found;
}

std::vector<pid_t> children(pid_t parent) {
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

std::size_t sweep(const std::string& study_directory) {
  const std::vector<pid_t> spared = ancestors_and_self();
  std::size_t found = 0;
  for (int round = 0; round < kSweepRounds; ++round) {
    std::size_t left = 0;
    for_each_number("/proc", [&](pid_t pid) {
      if (std::find(spared.begin(), spared.end(), pid) != spared.end()) return;
      if (!is_trial_under(pid, study_directory)) return;
      ++left;
      ::kill(pid, SIGKILL);
    });
    if (left == 0) break;
    found = std::max(found, left);
    std::this_thread::sleep_for(kSweepInterval);
  }
  return found;
}

}  // namespace fettle::local
