// The guard: a tiny process between the supervisor and each trial.
//
// It is a child subreaper with exactly one trial below it, so every process that the trial ever
// makes (forked twice, in a session of its own, with an empty environment) stays its descendant.
// When the trial's process has ended, or when told to, or when the supervisor dies, it kills all
// that is left and ends. A trial that is to stop has a grace period: its processes are told in turn
// (gentle_stop.h), and none is killed before the period is over, also if the first of them (a
// shell, say) has ended at once. The same holds when SIGTERM comes from elsewhere.
//
// A trial with several workers has a process for each, and has ended when all of them have, or some
// time after one of them failed that the others cannot do without. In an open trial a worker that
// was killed from outside gets a successor, and workers come and go when their number changes.
// It inherits the Study's lock: the lock is free only when no trial process is left, even if runner
// and supervisor were killed. Invariant: the status pipe is closed only after the last process of
// the trial has gone (or the guard itself was killed from outside, which is seen as a missing
// report).
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fettle::local {

struct GuardRequest {
  std::vector<std::string> arguments;  // arguments[0] is looked up in the new environment's PATH
  // The whole of it, NAME=value, of each worker that there can be, by rank; at least one. What
  // worker 0 writes to standard output is the trial's; of the others that is log, too.
  std::vector<std::vector<std::string>> environments;
  std::int64_t workers = 1;        // so many begin: the first ones
  bool open = false;               // others may come, leave and be replaced
  std::int64_t least_workers = 1;  // so many can go on when others fail, worker 0 among them
  // What the other workers have to end by themselves, and to say why, when one has failed or worker
  // 0 has ended.
  std::chrono::milliseconds parting_time{5'000};
  std::chrono::milliseconds grace{0};  // what a trial that is to stop has to do so
  std::string directory;               // "" = stay
  int lock_fd = -1;                    // kept open by the guard; -1 = none
  int claim_fd = -1;                   // likewise
  // A file with the GPUs of each worker, a line each, as CUDA_VISIBLE_DEVICES lists them; read
  // whenever a worker begins, since those of later ones are chosen later. "" or absent = none.
  std::string gpus_file;
  std::int64_t open_files = 0;  // soft limit of the workers; 0 = that of this process
};

// What the guard writes to the status pipe, once, before it ends.
struct GuardReport {
  // kNoRoom: not now; the machine or its user has no room for a process, or the program is just
  // being written.
  enum Failure : std::int32_t { kNone, kDirectory, kExec, kNoRoom };
  std::int32_t failure = kNone;  // the trial never started, and at what
  std::int32_t error = 0;        // errno of that
  std::int32_t rank = 0;         // of the worker that decided how the trial ended
  std::int32_t wait_status = 0;  // of its process, as waitpid has it
  std::int32_t left_behind = 0;  // processes that were still there when it ended
};

struct Guard {
  pid_t pid = 0;
  int status = -1;  // read ends, non-blocking
  int output = -1;
  int errors = -1;
};

// Forks a guard, which forks the trial. Only from a process with a single thread. kIo: no process
// or no pipe could be made.
Result<Guard> start_guard(const GuardRequest& request);

// Where the supervised runs of open trials look for GuardRequest::gpus_file.
inline std::string gpus_file_in(const std::string& run_directory) {
  return run_directory + "/gpus";
}

// What a guard listens to. Real-time signals: those that people and systems send to all
// processes of a unit (systemctl stop, scancel) are not meant as commands to a guard.

// How many workers there are to be, as the value that sigqueue() takes; at least 1. The last ones
// are told to leave by SIGTERM.
inline int guard_resize_signal() { return SIGRTMIN; }

// The trial is to stop within its grace period: nobody is started any more. After the period the
// command to kill is to follow; a guard that does not get it kills by itself, a little later.
inline int guard_stop_signal() { return SIGRTMIN + 1; }

// The trial is to be killed, with everything below it, now. The report then follows. The death of
// the supervisor sends it, too.
inline int guard_kill_signal() { return SIGRTMIN + 2; }

}  // namespace fettle::local
