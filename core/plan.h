// Plans: what is observed of a Study and of a Trial, and what is to be done about it.
//
// plan_study (study_plan.h) and plan_trial (trial_plan.h) are pure: no IO, no clock (now_ms is
// handed in), no randomness of their own. The cluster, the local runner and the simulator execute
// the same plans. Actions are executed in order, and the first one that fails ends the plan (the
// objects are read and planned again). So the order is part of the contract: facts before decisions
// that rest on them, intent before action, result before clean-up. Executing a plan twice, or half
// of it and then a new plan, does no harm: names are deterministic and counters are derived.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

// ---- What is observed --------------------------------------------------------------------------

// What runs can be had now. Local: worker slots on this machine.
struct Capacity {
  std::optional<std::int64_t> trials;  // most trials at once here; absent = no limit but the budget
  // Since when a worker of another Study has found no place; absent: all have one, or nobody knows.
  std::optional<std::int64_t> waiting_elsewhere_ms = std::nullopt;
  // On a cluster: where the GPUs of its trials come from now; null = not known, or CPU.
  std::shared_ptr<const api::GpuChoice> gpu = nullptr;
  std::optional<double> gpu_memory{};  // most bytes of one GPU that a worker has; absent = any
};

struct StudyView {
  const api::Study& study;
  const std::vector<api::TrialPtr>& trials;  // all of them, sorted by spec.index
  Capacity capacity;
};

// What is known of a run on a cluster, on one machine and in the simulator alike.
enum class RunState { kPending, kRunning, kExited };

struct Run {
  std::int64_t id = 0;
  std::int64_t workers = 1;  // now wanted
  // How many of them run now; absent: all where the run is Running, else none.
  std::optional<std::int64_t> running_workers;
  std::optional<double> gpus;         // of each worker; absent: as the Study says
  std::int64_t unplaced_workers = 0;  // of those that are wanted: they find no place to run
  std::int64_t until_step = 0;        // how far it was asked to go; 0 = as the Trial says
  RunState state = RunState::kPending;
  bool terminating = false;  // Exited, but some of its workers still live: no other run may begin
  std::string reason;        // Pending: what it waits for. Exited: explanation
  std::string silence;       // Exited without a report: why its output gave none; "" = nobody knows
  std::string pod_uid;
  std::int64_t started_ms = 0;  // when it began to run; 0 = unknown
  std::int64_t seen_ms = 0;     // when it was first seen to run, if news of it may wait; 0 = not
  std::int64_t ended_ms = 0;    // Exited. Running: it has ended, and its output is still read
  std::optional<api::Outcome> outcome;  // Exited
  std::optional<int> exit_code;         // Exited: of rank 0, where it ended by itself
  // Exited for want of memory of its GPU: how many bytes it needs at least; 0: it does not say.
  std::optional<double> gpu_memory_short;
  std::optional<api::Report> report;  // newest report read from its output, if that is the way
  // Times by our own clock, for whoever writes reports may have another one.
  std::int64_t heard_ms = 0;            // its newest report was first seen; 0 = as the report says
  std::optional<std::int64_t> read_ms;  // all output up to here was read; absent = it is not read
  // A queue took its processes away. Pending: it will start them again. Exited, with kDisrupted: it
  // ended by that, and the next run waits in the queue.
  bool queued = false;
};

struct TrialView {
  const api::Study& study;
  const api::Trial& trial;
  const std::vector<Run>& runs;  // those that exist now
};

// ---- What is to be done ------------------------------------------------------------------------

enum class EventType { kNormal, kWarning };

// For people: why something started, stopped, waits or failed.
struct EventNote {
  EventType type = EventType::kNormal;
  std::string reason;
  std::string message;
  bool operator==(const EventNote&) const = default;
};

struct CreateTrial {
  api::Trial trial;
};
// New facts for a trial's status; written with the resourceVersion that was seen.
struct RecordFacts {
  std::string trial;
  std::vector<api::Fact> facts;
};
// Changes of a Trial's spec: stop, suspend, resume, promotion, number of workers.
struct UpdateTrialSpec {
  std::string trial;
  api::TrialSpec spec;
  bool promotion = false;
  bool resize = false;
};
struct UpdateStudyStatus {
  api::StudyStatus status;
};
// It ended spec.ttlAfterFinished ago: with its trials, where the Store does not keep Studies.
struct DeleteStudy {};
struct UpdateTrialStatus {
  api::TrialStatus status;
};
// Of spec.workers workers, up to spec.until_step.
struct StartRun {
  std::int64_t run = 0;
  // No status write comes before it that would fail on a stale view: make sure first, without a
  // cache, that the trial is still what was planned from.
  bool confirm = false;
};
struct ResizeRun {
  std::int64_t run = 0;
  std::int64_t workers = 1;
};
struct StopRun {
  std::int64_t run = 0;
};  // gently: SIGTERM, then SIGKILL
struct DeleteRun {
  std::int64_t run = 0;
};  // its result is recorded: forget it
struct Note {
  EventNote event;
};

using StudyAction =
    std::variant<RecordFacts, UpdateTrialSpec, CreateTrial, UpdateStudyStatus, DeleteStudy, Note>;
using TrialAction = std::variant<UpdateTrialStatus, StartRun, ResizeRun, StopRun, DeleteRun, Note>;

struct StudyPlan {
  std::vector<StudyAction> actions;
  std::optional<std::int64_t> wake_at_ms;  // plan again then, even if nothing happens
};

struct TrialPlan {
  std::vector<TrialAction> actions;
  std::optional<std::int64_t> wake_at_ms;
};

}  // namespace fettle::core
