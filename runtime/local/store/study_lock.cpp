#include "runtime/local/store/study_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/file.h"
#include "runtime/local/store/network_disk.h"

namespace fettle::local {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);

struct flock whole_file(short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  return range;
}

std::string runner_file(const std::string& path) { return path + ".runner"; }

// The kernel gives no valid pid for a holder on another machine.
pid_t holder_of(int fd) {
  struct flock range = whole_file(F_WRLCK);
  if (::fcntl(fd, F_GETLK, &range) != 0 || range.l_type == F_UNLCK) return 0;
  return range.l_pid > 0 ? range.l_pid : StudyLock::kElsewhere;
}

Error held_by(pid_t pid) {
  const std::string who =
      pid == StudyLock::kElsewhere ? "on another machine" : "process " + std::to_string(pid);
  return {ErrorCode::kUnavailable,
          "another fettle run (" + who +
              ") is at work on this Study; wait for it, or stop it: fettle stop"};
}

Error cannot_lock(const std::string& path, int code) {
  std::string message = "cannot lock " + path + ": " + system_message(code);
  const std::string network = network_file_system(path);
  if (!network.empty()) {
    message += "; it lies on a network file system (" + network +
               "), which may not lock: keep it on a local disk: -C DIR";
  }
  return io_error(message);
}

Error wait_over(const std::string& path, std::int64_t waited_ms) {
  return {ErrorCode::kUnavailable,
          "an earlier run of this Study is still stopping its trials after " +
              std::to_string(waited_ms / 1000) + " s (" + path +
              " is locked); try again when they have ended"};
}

Error cannot_open(const std::string& path, int code) {
  if (code == ELOOP) {
    return io_error(path +
                    " is a link, and fettle does not follow it; see who made it, and remove it");
  }
  std::string message = "cannot open " + path + " for writing: " + system_message(code);
  if (code == EROFS || code == EACCES || code == EPERM) {
    message += "; fettle keeps a Study's state there, so run it in a directory that can be written";
  }
  return io_error(message);
}

// Takes flock on fd, waiting for a supervisor but never for a runner.
Status take(int fd, int runner_fd, const std::string& path, const StudyLockOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  bool said = false;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return cannot_lock(path, errno);
    if (const pid_t pid = holder_of(runner_fd); pid != 0) return held_by(pid);
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - start);
    if (waited.count() >= options.wait_ms) return wait_over(path, waited.count());
    // Only after a while: between a rival's two locks it looks like a supervisor for an instant.
    if (!said && options.say && waited > 2 * kPollInterval) {
      options.say("waiting for an earlier run of this Study to finish stopping its trials");
      said = true;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return success();
}

}  // namespace

Result<StudyLock> StudyLock::acquire(const std::string& path, const StudyLockOptions& options) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return cannot_open(path, errno);
  // From here on `lock` closes both files, whatever fails.
  const std::string runner = runner_file(path);
  StudyLock lock(fd, ::open(runner.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (lock.runner_fd_ < 0) return cannot_open(runner, errno);
  FETTLE_TRY(take(fd, lock.runner_fd_, path, options));
  // No other runner has it: one that lives would hold the first lock, too.
  struct flock range = whole_file(F_WRLCK);
  if (::fcntl(lock.runner_fd_, F_SETLK, &range) != 0) return cannot_lock(runner, errno);
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    return io_error("cannot write " + path + ": " + system_message(errno));
  }
  return lock;
}

pid_t StudyLock::holder(const std::string& path) {
  // Opening and closing would drop a record lock of this very process, so a process must not ask
  // about its own Session; a reader (fettle status) has none.
  int fd = ::open(runner_file(path).c_str(), O_RDONLY | O_CLOEXEC);
  // A runner of version 0.1 has both locks on the first file.
  if (fd < 0) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const pid_t pid = holder_of(fd);
  ::close(fd);
  return pid;
}

bool StudyLock::is_held(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

StudyLock::StudyLock(StudyLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), runner_fd_(std::exchange(other.runner_fd_, -1)) {}

StudyLock::~StudyLock() {
  if (runner_fd_ >= 0) ::close(runner_fd_);
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace fettle::local
