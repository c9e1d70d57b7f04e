#include "runtime/local/process/supervised_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace fettle::local {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kDrainReads = 64;  // enough for a full pipe (1 MiB at most) after the end
constexpr std::int64_t kKillIntervalMs = 1000;  // the command to kill is repeated this often

// Locks the claim file for the guard. The runner keeps its lock until it hears that the run has
// begun, and both locks are shared, so this one is never refused. Returns -1 without a file.
int hold_claim(const std::string& path) {
  if (path.empty()) return -1;
  int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && ::flock(fd, LOCK_SH | LOCK_NB) != 0) close_fd(fd);
  return fd;
}

// Returns true if there may be more. Closes the file at its end.
bool read_stream(int& fd, const SupervisedProcess::Sink& sink) {
  char buffer[kReadBytes];
  if (fd < 0) return false;
  const ssize_t got = ::read(fd, buffer, sizeof(buffer));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    close_fd(fd);
    return false;
  }
  sink({buffer, static_cast<std::size_t>(got)});
  return true;
}

void drain(int& fd, const SupervisedProcess::Sink& sink) {
  for (int i = 0; i < kDrainReads && read_stream(fd, sink); ++i) {
  }
  close_fd(fd);
}

}  // namespace

SupervisedProcess::SupervisedProcess(const SupervisorCommand& command,
                                     std::vector<std::vector<std::string>> environments,
                                     int lock_fd, std::int64_t open_files, int assignments_fd)
    : is_open_(command.open), grace_ms_(std::max<std::int64_t>(command.grace_ms, 1)) {
  int claim_fd = hold_claim(command.claim_file);
  const Result<Guard> started = start_guard(
      {command, std::move(environments), lock_fd, claim_fd, assignments_fd, open_files});
  close_fd(claim_fd);  // the guard has it now
  if (started.ok()) {
    guard_ = *started;
  } else {
    start_error_ = started.error().message;
    ended_ = true;
  }
}

SupervisedProcess::~SupervisedProcess() {
  close_fd(guard_.status);
  close_fd(guard_.output);
  close_fd(guard_.errors);
}

void SupervisedProcess::add_polls(std::vector<pollfd>& polls) const {
  for (const int fd : {guard_.output, guard_.errors, guard_.status}) {
    if (fd >= 0) polls.push_back({fd, POLLIN, 0});
  }
}

void SupervisedProcess::read(const Sink& output, const Sink& errors) {
  read_stream(guard_.output, output);
  read_stream(guard_.errors, errors);
  // All writers have ended then, and the pipes hold a bounded rest of the output.
  if (!read_status()) return;
  drain(guard_.output, output);
  drain(guard_.errors, errors);
  ended_ = true;
}

// Reads the guard's report, then the end of file, which comes when the guard and all below it have
// ended. Returns true at that end, once.
bool SupervisedProcess::read_status() {
  if (guard_.status < 0) return false;
  char buffer[sizeof(GuardReport)];
  for (;;) {
    const ssize_t got = ::read(guard_.status, buffer, sizeof(buffer));
    if (got < 0) return false;  // nothing yet, or EINTR: poll() reports it again
    if (got == 0) break;
    status_bytes_.append(buffer, static_cast<std::size_t>(got));
    // A failure to start comes first and counts; the guard's own report follows it.
    status_bytes_.resize(std::min(status_bytes_.size(), sizeof(GuardReport)));
  }
  close_fd(guard_.status);
  ::waitpid(guard_.pid, nullptr, 0);  // it is about to exit, or was killed
  end_.reported = status_bytes_.size() == sizeof(GuardReport);
  if (end_.reported) std::memcpy(&end_.report, status_bytes_.data(), sizeof(GuardReport));
  return true;
}

void SupervisedProcess::tick(std::int64_t now_ms) {
  if (ended_ || kill_at_ms_ == 0 || now_ms < kill_at_ms_) return;
  // Unless kill() was called before: then this only repeats the command.
  end_.killed_after_grace = end_.killed_after_grace || !killing_;
  kill(end_.cause, now_ms);
}

std::int64_t SupervisedProcess::wake_ms() const {
  if (ended_) return 0;  // at once: the supervisor has to collect it
  return kill_at_ms_ > 0 ? kill_at_ms_ : std::numeric_limits<std::int64_t>::max();
}

void SupervisedProcess::resize(std::int64_t workers) {
  if (ended_ || !is_open_ || workers < 1) return;
  sigval value{};
  value.sival_int = static_cast<int>(workers);
  (void)::sigqueue(guard_.pid, guard_resize_signal(), value);
}

void SupervisedProcess::stop(StopCause cause, std::int64_t now_ms) {
  if (ended_ || kill_at_ms_ > 0) return;  // it is stopping already, or being killed
  if (end_.cause == StopCause::kNone) end_.cause = cause;
  ::kill(guard_.pid, guard_stop_signal());
  kill_at_ms_ = now_ms + grace_ms_;
}

void SupervisedProcess::kill(StopCause cause, std::int64_t now_ms) {
  if (ended_) return;
  if (end_.cause == StopCause::kNone) end_.cause = cause;
  ::kill(guard_.pid, guard_kill_signal());
  killing_ = true;
  kill_at_ms_ = now_ms + kKillIntervalMs;  // tick() repeats the command
}

}  // namespace fettle::local
