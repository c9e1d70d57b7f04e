// GentleStop: who below a guard is told by SIGTERM to end, and when.
//
// A program that is told saves its work; its own helpers (a data loader's workers, a logger) must
// not go away under it meanwhile, and a shell or launcher above it must not keep the news to
// itself. So SIGTERM comes from above: to the guard's children first. A shell, `time` or a launcher
// without a handler dies of it, which makes what it waited for a child of the guard: that is told
// next. Whoever has a handler is trusted to see to its own children, but for a shell, which runs
// its trap only after its command in the foreground has ended: that is told, too, but not what the
// trap then runs, which may be what saves. Who reads from a pipe of a process that is still ending
// (`| tee log`) ends with it and is not told before.
// Invariant: nobody is told twice within a grace period. Not synchronised.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/local/proc_table.h"

namespace fettle::local {

struct Turns {
  std::vector<ProcessId> now;    // in this order: a shell before its command
  std::vector<ProcessId> later;  // when those have ended whose pipes they read
};

// Whose turn it is of `tree`, all descendants of `guard`. `later`: what the last call said. Pure.
Turns whose_turn(pid_t guard, const std::vector<Process>& tree, const std::set<ProcessId>& told,
                 const std::set<ProcessId>& later);

class GentleStop {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `grace`: what they have to end, in the calling process's tree.
  explicit GentleStop(std::chrono::milliseconds grace) : grace_(grace) {}

  // The supervisor wants it; it sends the command to kill when the grace period is over.
  void begin(Time now);
  // SIGTERM has come from elsewhere, to all processes at once (systemctl stop, scancel, shutdown):
  // a second one would meet them while they save. If it was not for all (pkill fettle), they hear
  // of it when a third of the grace period has passed.
  void overhear(Time now);
  bool has_begun() const { return since_.has_value(); }

  // Sends SIGTERM to those whose turn has come. Again whenever a process has ended, or after a
  // while: a shell's children end without a word to the guard.
  void tell(Time now);

  // The grace period has passed, and no supervisor has sent the command to kill.
  bool is_over(Time now) const;

 private:
  const std::chrono::milliseconds grace_;
  std::optional<Time> since_;
  bool has_supervisor_ = false;  // it keeps the time
  bool repeated_ = false;        // to those that may not have been told from elsewhere
  std::set<ProcessId> later_;
  std::map<ProcessId, bool> told_;  // true: by us; only processes that still run
};

}  // namespace fettle::local
