#include "base/machine/cgroup.h"

#include <algorithm>
#include <sstream>

#include "base/file.h"

namespace fettle::machine {
namespace {

template <class Number>
void tighten(std::optional<Number>& limit, Number other) {
  limit = limit ? std::min(*limit, other) : other;
}

// Applies one group's limits. memory.max has bytes; cpu.max has quota and period, both in
// microseconds. "max" means no limit, and does not parse as a number.
void take_limits(const std::string& directory, CgroupLimits& limits) {
  if (const auto text = read_file(directory + "/memory.max"); text.ok()) {
    std::int64_t bytes = 0;
    if (std::istringstream(*text) >> bytes) tighten(limits.memory, bytes);
  }
  if (const auto text = read_file(directory + "/cpu.max"); text.ok()) {
    double quota = 0;
    double period = 0;
    if (std::istringstream(*text) >> quota >> period && period > 0) {
      tighten(limits.cores, quota / period);
    }
  }
}

// "0::/a/b" is the line of version 2.
std::string own_group(const std::string& root) {
  const auto text = read_file(root + "/proc/self/cgroup");
  if (!text.ok()) return "";
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("0::/", 0) == 0) return line.substr(3);
  }
  return "";
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  std::string group = own_group(root);
  for (;;) {
    take_limits(root + "/sys/fs/cgroup" + group, limits);
    if (group.empty()) return limits;
    group.resize(group.rfind('/'));
  }
}

}  // namespace fettle::machine
