// Endings: translates the exit of a process, with other evidence about it, into an outcome and a
// sentence. One table, for containers and for processes of this machine (docs/how-a-trial-ends.md).
// trial_plan.h decides what follows from an outcome.
// Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>

#include "api/trial/trial.h"

namespace fettle::core {

// The exit code of a program that SIGTERM stopped, after its checkpoint: 128 + SIGTERM. (A worker
// that misses other workers exits with api::kWorkerMissesOthers.)
inline constexpr int kStoppedBySigterm = 143;
// The exit code by which a shell or a container runtime reports SIGKILL: 128 + SIGKILL.
inline constexpr int kKilledBySigkill = 137;

// The observer of the end. A container runtime reports a signal as exit code 128 + n. For a process
// of this machine the signal itself is known, and such a code comes from a shell that reports its
// child.
enum class Host { kContainer, kProcess };

// Evidence about an end besides the exit.
enum class EndCondition {
  kNone,
  kStopAsked,           // we asked for the end
  kRunnerInterrupted,   // `fettle run` was interrupted, and stopped it
  kRunnerDied,          // `fettle run` is gone; supervisor or guard stopped it
  kPodDisrupted,        // preempted, evicted, its node drained: the cluster says so itself
  kPodDeleted,          // not by us
  kPodRefused,          // the node did not let it in, or lost it
  kPodNeverBegan,       // an init container failed
  kNodeLost,            // it should have ended, and its node does not answer
  kResultLost,          // its pod is gone, and its exit was not seen
  kGuardKilled,         // the process that watched it was killed
  kOverTimeLimit,       // its pod's; spec.trial.timeout is enforced by trial_plan.h
  kOverMemoryLimit,     // its own limit, not the machine's
  kMachineOutOfMemory,  // the kernel killed it or one of its processes
  kCannotStart,         // never, as the template is written
  kCannotStartNow,      // something it needs is in use
};

struct Exit {
  Host host = Host::kProcess;
  std::optional<int> code = std::nullopt;    // set if it exited by itself
  std::optional<int> signal = std::nullopt;  // set if a signal ended it
  EndCondition condition = EndCondition::kNone;
  bool has_peers = false;     // it is one of several workers
  bool final_result = false;  // it said that its result is final
};

struct JudgedExit {
  api::Outcome outcome = api::Outcome::kFailed;
  std::string reason;     // for people; "" = it ended as it should
  bool presumed = false;  // nothing but the exit code says that it was disrupted
};

// Applies the first row of the table that fits. A caller that knows more (how much memory, the
// cluster's own words) replaces the reason or appends to it.
JudgedExit judge_exit(const Exit& exit);

}  // namespace fettle::core
