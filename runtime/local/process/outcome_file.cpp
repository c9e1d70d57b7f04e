#include "runtime/local/process/outcome_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/file.h"

namespace fettle::local {
namespace {

std::string room_of(const std::string& run_directory) { return run_directory + "/outcome.room"; }

bool overwrite(int fd, std::string_view content) {
  std::size_t at = 0;
  while (at < content.size()) {
    const ssize_t written =
        ::pwrite(fd, content.data() + at, content.size() - at, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    at += static_cast<std::size_t>(written);
  }
  return ::ftruncate(fd, static_cast<off_t>(content.size())) == 0;
}

// Overwrites blocks that the file already has.
bool write_into_room(const std::string& run_directory, std::string_view content) {
  if (content.size() > kOutcomeRoom) return false;
  const std::string room = room_of(run_directory);
  const int fd = ::open(room.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool written = overwrite(fd, content);
  const bool closed = ::close(fd) == 0;
  return written && closed &&
         ::rename(room.c_str(), (run_directory + "/outcome.json").c_str()) == 0;
}

}  // namespace

Status reserve_outcome(const std::string& run_directory) {
  // Not zeros: some file systems store zeros without taking room.
  return write_file(room_of(run_directory), std::string(kOutcomeRoom, '\n'));
}

Status write_outcome_file(const std::string& run_directory, const RunOutcome& outcome) {
  const std::string path = run_directory + "/outcome.json";
  const Json document = write_outcome(outcome);
  Status written = write_file(path, document.dump(2) + "\n");
  // A full disk: the reserved room becomes the outcome, by a rename.
  if (!written.ok() && write_into_room(run_directory, document.dump() + "\n")) return success();
  release_outcome(run_directory);
  // On file systems that never overwrite in place (btrfs, ZFS), the room is free only now.
  if (!written.ok()) written = write_file(path, document.dump() + "\n");
  return written;
}

void release_outcome(const std::string& run_directory) { ::unlink(room_of(run_directory).c_str()); }

}  // namespace fettle::local
