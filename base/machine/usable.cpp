#include "base/machine/usable.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/machine/cgroup.h"

namespace fettle::machine {

double usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const double cores = ::sched_getaffinity(0, sizeof(set), &set) == 0
                           ? CPU_COUNT(&set)
                           : static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1.0, std::min(cores, cgroup_limits().cores.value_or(cores)));
}

std::int64_t usable_memory() {
  const auto bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  return std::min(bytes, cgroup_limits().memory.value_or(bytes));
}

}  // namespace fettle::machine
