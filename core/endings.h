// Endings: what the end of a process means, from its exit and what else is known of it to an
// outcome and a sentence. One table, for containers and for processes of this machine
// (docs/how-a-trial-ends.md). What follows from an outcome is decided in trial_plan.h.
// Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>

#include "api/trial.h"

namespace fettle::core {

// What a program that SIGTERM asked to stop exits with, after its checkpoint: 128 + SIGTERM. That
// of a worker which misses others is api::kWorkerMissesOthers.
inline constexpr int kStoppedBySigterm = 143;
// What a shell or a container runtime says of a program that SIGKILL ended: 128 + SIGKILL.
inline constexpr int kKilledBySigkill = 137;

// Who saw the end. A container runtime tells a signal as exit code 128 + n; for a process of this
// machine such a code is what a shell makes of the end of a child.
enum class Host { kContainer, kProcess };

// What is known of an end besides the exit.
enum class EndCondition {
  kNone,
  kStopAsked,           // we asked for the end
  kRunnerInterrupted,   // `fettle run` was interrupted, and stopped it
  kRunnerDied,          // `fettle run` is gone, and whoever is left stopped it
  kPodDisrupted,        // preempted, evicted, its node drained: the cluster says so itself
  kPodDeleted,          // by somebody else
  kPodRefused,          // the node did not let it in, or lost it
  kPodNeverBegan,       // an init container failed
  kNodeLost,            // it should have ended, and its node does not answer
  kResultLost,          // it is gone, and nobody saw how it ended
  kGuardKilled,         // so is the process that watched it
  kOverTimeLimit,       // of its pod; spec.trial.timeout is a deadline of the core's
  kOverMemoryLimit,     // its own
  kMachineOutOfMemory,  // the kernel killed it, or a process of it
  kCannotStart,         // as it is written
  kCannotStartNow,      // for want of something that others use
};

struct Exit {
  Host host = Host::kProcess;
  std::optional<int> code = std::nullopt;    // it exited by itself
  std::optional<int> signal = std::nullopt;  // it was ended by one
  EndCondition condition = EndCondition::kNone;
  bool has_peers = false;     // it is one of several workers
  bool final_result = false;  // it said that its result is final
};

struct JudgedExit {
  api::Outcome outcome = api::Outcome::kFailed;
  std::string reason;  // for people; "" = it ended as it should
};

// The first row of the table that fits. Whoever knows more (how much memory, in the cluster's own
// words) puts it in place of the reason, or behind it.
JudgedExit judge_exit(const Exit& exit);

}  // namespace fettle::core
