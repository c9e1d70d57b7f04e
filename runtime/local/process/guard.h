// The guard: a small process between the supervisor and each trial.
//
// It is a child subreaper with exactly one trial below it, so every process that the trial starts
// (forked twice, in a session of its own, with an empty environment) stays its descendant. When the
// trial's process has ended, on command, or when the supervisor dies, it kills all remaining
// processes and ends. A trial that is to stop has a grace period: its processes get SIGTERM in turn
// (gentle_stop.h), and none is killed before the period is over, even if the first of them (a
// shell, say) has ended at once. The same holds when SIGTERM comes from elsewhere. A trial that
// holds more memory than its limit is killed at once.
//
// A trial with several workers has a process for each. It has ended when all of them have, or some
// time after one on which the others depend has failed. In an open trial a worker that was killed
// from outside is replaced, and workers start and leave when their number changes. The guard
// inherits the Study's lock: the lock is free only when no trial process is left, even if runner
// and supervisor were killed. Invariant: the status pipe is closed only after the last process of
// the trial has ended (or the guard itself was killed, which shows as a missing report).
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

struct GuardRequest {
  const SupervisorCommand& command;  // kStart
  // The complete environment, NAME=value, of each possible worker, by rank; at least one. Standard
  // output of worker 0 is the trial's; the output of the others is only logged.
  std::vector<std::vector<std::string>> environments;
  int lock_fd = -1;             // kept open by the guard; -1 = none
  int claim_fd = -1;            // likewise
  int assignments_fd = -1;      // inherited by the program of a worker; -1 = none
  std::int64_t open_files = 0;  // soft limit of the workers; 0 = that of this process
};

// The message that the guard writes to the status pipe, once, before it ends.
struct GuardReport {
  // kNoRoom: not now, because the machine or its user can have no more processes, or the program's
  // file is still being written.
  enum Failure : std::int32_t { kNone, kDirectory, kExec, kNoRoom };
  std::int32_t failure = kNone;  // why the trial never started
  std::int32_t error = 0;        // errno of that failure
  std::int32_t rank = 0;         // of the worker that decided how the trial ended
  std::int32_t wait_status = 0;  // of its process, as waitpid has it
  std::int32_t left_behind = 0;  // processes that were still there when it ended
  std::int32_t over_memory = 0;  // 1: it was killed because it held more than its limit
  std::int64_t peak_memory = 0;  // the most at one time, mapped files excepted
};

struct Guard {
  pid_t pid = 0;
  int status = -1;  // read ends, non-blocking
  int output = -1;
  int errors = -1;
};

// Closes a descriptor, unless that is -1, and sets it to -1.
void close_fd(int& fd);

// Forks a guard, which forks the trial. Only from a process with a single thread. kIo: no process
// or no pipe could be made.
Result<Guard> start_guard(const GuardRequest& request);

// The file of the GPUs of each worker of an open trial, one line each, as CUDA_VISIBLE_DEVICES
// lists them. It is read when a worker starts, since the GPUs of later workers are chosen later. It
// may be absent.
inline std::string gpus_file_in(const std::string& run_directory) {
  return run_directory + "/gpus";
}

// Commands to a guard. They are real-time signals, because signals that people and systems send to
// all processes of a unit (systemctl stop, scancel) must not be commands.

// Sets the number of workers to the value that sigqueue() takes; at least 1. Surplus workers, of
// the highest ranks, get SIGTERM.
inline int guard_resize_signal() { return SIGRTMIN; }

// Stops the trial within its grace period; no more workers start. The command to kill should follow
// after the period; without it the guard kills by itself, a little later.
inline int guard_stop_signal() { return SIGRTMIN + 1; }

// Kills the trial, with everything below it. The report then follows. The death of the supervisor
// sends this signal, too.
inline int guard_kill_signal() { return SIGRTMIN + 2; }

}  // namespace fettle::local
