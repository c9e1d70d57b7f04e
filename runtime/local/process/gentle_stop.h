// GentleStop: which processes below a guard get SIGTERM, and when.
//
// A program that gets SIGTERM saves its work. Its helpers (a data loader's workers, a logger) must
// stay alive while it does, and a shell or launcher above it must not swallow the signal. So
// SIGTERM is sent from the top: first to the guard's children. A shell, `time` or a launcher
// without a handler dies of it, and the process it waited for becomes a child of the guard, which
// is signalled next. A process with a handler is trusted to stop its own children. The exception is
// a shell: it runs its trap only after its command in the foreground has ended, so that command is
// signalled, too, but not what the trap then runs, which may do the saving. A process that reads
// from a pipe of one that is still ending (`| tee log`) ends with it and is not signalled before.
// Invariant: no process is signalled twice within a grace period. Not synchronised.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/local/process/proc_table.h"

namespace fettle::local {

struct Turns {
  std::vector<ProcessId> now;    // in this order: a shell before its command
  std::vector<ProcessId> later;  // when those have ended whose pipes they read
};

// Which of `tree`, all descendants of `guard`, come next. `later`: as the last call returned. Pure.
Turns whose_turn(pid_t guard, const std::vector<Process>& tree, const std::set<ProcessId>& told,
                 const std::set<ProcessId>& later);

class GentleStop {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `grace`: the time they have to end. They are the descendants of the calling process.
  explicit GentleStop(std::chrono::milliseconds grace) : grace_(grace) {}

  // On the supervisor's command; it sends the one to kill when the grace period is over.
  void begin(Time now);
  // SIGTERM has come from elsewhere, to all processes at once (systemctl stop, scancel, shutdown):
  // a second one would disturb them while they save. In case it was not sent to all (pkill fettle),
  // it is repeated when a third of the grace period has passed.
  void overhear(Time now);
  bool has_begun() const { return since_.has_value(); }

  // Sends SIGTERM to those that come next. Requires has_begun(). Call it when a process has ended,
  // and from time to time: the guard gets no signal when a shell's children end.
  void tell(Time now);

  // The grace period has passed, and no supervisor has sent the command to kill.
  bool is_over(Time now) const;

 private:
  const std::chrono::milliseconds grace_;
  std::optional<Time> since_;
  bool has_supervisor_ = false;  // which keeps the time
  bool repeated_ = false;        // for those that may not have got it from elsewhere
  std::set<ProcessId> later_;    // whose turn comes when the writers of their pipes have ended
  // Of those that still run. true: signalled by this object; false: assumed to have been, from
  // elsewhere.
  std::map<ProcessId, bool> told_;
};

}  // namespace fettle::local
