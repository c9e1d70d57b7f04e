#include "runtime/local/process/disk_room.h"

#include <sys/statvfs.h>

namespace fettle::local {

bool has_room_for_log(int fd, std::int64_t bytes) {
  struct statvfs disk {};
  if (::fstatvfs(fd, &disk) != 0 || disk.f_blocks == 0) return true;
  const auto block = static_cast<std::int64_t>(disk.f_frsize);
  const std::int64_t free = static_cast<std::int64_t>(disk.f_bavail) * block;
  return free - bytes >= room_for_results(static_cast<std::int64_t>(disk.f_blocks) * block);
}

}  // namespace fettle::local
