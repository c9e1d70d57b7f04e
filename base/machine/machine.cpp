#include "base/machine/machine.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/machine/usable.h"

namespace fettle::machine {
namespace {

std::string text_of(const std::string& path) {
  const auto text = read_file(path);
  return text.ok() ? *text : "";
}

// The number after `key` at the beginning of a line; 0 without it.
std::int64_t kibibytes(std::string_view text, std::string_view key) {
  std::size_t at = text.find(key);  // perhaps within a longer key, which the loop skips
  while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') {
    at = text.find(key, at + 1);
  }
  if (at == std::string_view::npos) return 0;  // unknown
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Tries it: the rights of a directory say less than its file system does.
bool is_writable(const std::string& directory) {
  std::string name = directory + "/.fettle-doctor-XXXXXX";
  const int file = ::mkstemp(name.data());
  if (file < 0) return false;
  ::close(file);
  ::unlink(name.c_str());
  return true;
}

Disk inspect_disk(const std::string& directory) {
  std::error_code code;
  std::filesystem::path path = std::filesystem::absolute(directory, code);
  // Finds the nearest existing parent; "/" has no relative path.
  while (!std::filesystem::is_directory(path, code) && path.has_relative_path()) {
    path = path.parent_path();
  }
  Disk disk;
  disk.directory = path.string();
  disk.writable = is_writable(disk.directory);
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) == 0) {
    disk.free = static_cast<std::int64_t>(space.f_bavail * space.f_frsize);
    disk.total = static_cast<std::int64_t>(space.f_blocks * space.f_frsize);
  }
  return disk;
}

}  // namespace

MemoryInfo parse_memory(std::string_view meminfo) {
  constexpr std::int64_t kKibibyte = 1024;
  return {kKibibyte * kibibytes(meminfo, "MemTotal:"),
          kKibibyte * kibibytes(meminfo, "MemAvailable:")};
}

Machine inspect_machine(const std::string& directory) {
  Machine machine;
  machine.cpu = parse_cpu(text_of("/proc/cpuinfo"));
  machine.cores = usable_cores();
  machine.memory = parse_memory(text_of("/proc/meminfo"));
  machine.usable_memory = usable_memory();
  machine.limits = cgroup_limits();
  machine.disk = inspect_disk(directory);
  machine.gpus = find_gpus();
  return machine;
}

}  // namespace fettle::machine
