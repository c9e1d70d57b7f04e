#include "base/machine/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace fettle::machine {
namespace {

// Files of a run: status, output, errors, the end of its start, and its log.
constexpr std::int64_t kFilesOfRun = 5;
// Files of a worker besides: its assignments, and a log of its own.
constexpr std::int64_t kFilesOfWorker = kFilesOfRun + 2;
// Files of the supervisor, and of one run that is starting: eight ends of pipes, its claim.
constexpr std::int64_t kFilesBeside = 24;
constexpr std::int64_t kUnlimited = 1 << 30;

std::int64_t count(rlim_t limit) {
  return limit == RLIM_INFINITY ? kUnlimited
                                : static_cast<std::int64_t>(std::min<rlim_t>(limit, kUnlimited));
}

}  // namespace

std::int64_t raise_open_files() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const std::int64_t before = count(limit.rlim_cur);
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

void limit_open_files(std::int64_t soft) {
  struct rlimit limit {};
  if (soft <= 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(static_cast<rlim_t>(soft), limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

std::int64_t most_open_files() {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? count(limit.rlim_max) : kUnlimited;
}

std::int64_t runs_within(std::int64_t open_files) {
  return std::max<std::int64_t>((open_files - kFilesBeside) / kFilesOfRun, 1);
}

std::int64_t workers_instead(std::int64_t runs) {
  return std::max<std::int64_t>(runs * kFilesOfRun / kFilesOfWorker, 1);
}

}  // namespace fettle::machine
