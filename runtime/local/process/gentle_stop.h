// GentleStop: sends SIGTERM to the processes below a guard, in turn.
//
// A program that gets SIGTERM saves its work. Its helpers (a data loader's workers, a logger) must
// stay alive while it does, and a shell or launcher above it must not swallow the signal. So
// SIGTERM is sent from the top: first to the guard's children. A shell, `time` or a launcher
// without a handler dies of it, and the process it waited for becomes a child of the guard, which
// is signalled next. A process with a handler is trusted to stop its own children. The exception is
// a shell: it runs its trap only after its command in the foreground has ended, so that command is
// signalled, too, but not the commands of the trap, which may do the saving. A process that reads
// from a pipe of a process that is still ending (`| tee log`) ends with it and is not signalled
// before. Invariant: no process is signalled twice within a grace period. Not synchronised.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/local/process/proc_table.h"

namespace fettle::local {

struct SignalPlan {
  std::vector<ProcessId> now;    // in this order: a shell before its command
  std::vector<ProcessId> later;  // after the processes whose pipes they read
};

// Returns which processes of `tree`, all descendants of `guard`, come next. `later`: as the last
// call returned it. Pure.
SignalPlan next_to_signal(pid_t guard, const std::vector<Process>& tree,
                          const std::set<ProcessId>& signalled, const std::set<ProcessId>& later);

class GentleStop {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `grace`: the time in which the descendants of the calling process have to end.
  explicit GentleStop(std::chrono::milliseconds grace) : grace_(grace) {}

  // On the supervisor's command; it also sends the command to kill when the grace period is over.
  void begin(Time now);
  // SIGTERM has come from elsewhere, to all processes at once (systemctl stop, scancel, shutdown):
  // a second one would disturb them while they save. In case it was not sent to all (pkill fettle),
  // it is repeated when a third of the grace period has passed.
  void note_external_sigterm(Time now);
  bool has_begun() const { return since_.has_value(); }

  // Sends SIGTERM to the processes that come next. Requires has_begun(). Call it when a process has
  // ended, and from time to time: the guard gets no signal when a shell's children end.
  void send_sigterm(Time now);

  // Whether the grace period has passed without the supervisor's command to kill.
  bool is_over(Time now) const;

 private:
  const std::chrono::milliseconds grace_;
  std::optional<Time> since_;
  bool has_supervisor_ = false;  // the supervisor keeps the time
  bool repeated_ = false;        // for processes that SIGTERM from elsewhere may have missed
  std::set<ProcessId> later_;    // they wait for the writers of their pipes to end
  // Processes that still run. true: signalled by this object; false: assumed to have been signalled
  // from elsewhere.
  std::map<ProcessId, bool> signalled_;
};

}  // namespace fettle::local
