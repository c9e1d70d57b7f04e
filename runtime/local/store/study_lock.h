// StudyLock: at most one runner for a Study, and no second process for a trial, ever.
//
// There are two locks. flock() of `path` belongs to the open file: the runner takes it, the
// supervisor and the guard of every trial inherit it, so it is free only when the last process of
// the Study has ended, in whatever way. The POSIX record lock of `path`.runner belongs to the
// runner's process alone: it shows whether a runner lives (and, from the kernel, its pid, which
// cannot be stale) or only a supervisor that is still cleaning up. Two files, because NFS makes
// flock() a record lock of another owner: on one file the second lock would be refused because of
// the first. The pid in the file is for people. Owned by the runner's Session; not synchronised.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace fettle::local {

struct StudyLockOptions {
  // How long to wait for a supervisor that is cleaning up after a runner that died.
  std::int64_t wait_ms = 120'000;
  // Called once, with a sentence, when a wait begins.
  std::function<void(const std::string&)> say;
};

class StudyLock {
 public:
  // kUnavailable: another living runner has the Study (named with its pid), or the wait ended. kIo:
  // the file cannot be made, with the reason and the way out.
  static Result<StudyLock> acquire(const std::string& path, const StudyLockOptions& options = {});
  // The pid of the living runner that holds `path`; 0: none; kElsewhere: it is on another machine.
  static constexpr pid_t kElsewhere = -1;
  static pid_t holder(const std::string& path);
  // Whether a process holds `path`: a runner, its supervisor, or a guard that still cleans up. It
  // tries to take the lock, so the process that holds it must not ask.
  static bool is_held(const std::string& path);

  StudyLock(StudyLock&& other) noexcept;
  StudyLock(const StudyLock&) = delete;
  StudyLock& operator=(const StudyLock&) = delete;
  ~StudyLock();

  // The open file; a child that inherits it holds the lock too.
  int fd() const { return fd_; }

 private:
  StudyLock(int fd, int runner_fd) : fd_(fd), runner_fd_(runner_fd) {}
  int fd_ = -1;
  int runner_fd_ = -1;
};

}  // namespace fettle::local
