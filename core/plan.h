// Plans: observations of a Study and of a Trial, and the actions that follow from them.
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

#include "api/study/place.h"
#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::core {

// ---- Observations ------------------------------------------------------------------------------

// The room for runs now. Local: worker slots on this machine.
struct Capacity {
  std::optional<std::int64_t> trials;  // most trials at once here; absent = no limit but the budget
  // The time since which a worker of another Study has waited for a node; absent: all have one, or
  // unknown.
  std::optional<std::int64_t> waiting_elsewhere_ms = std::nullopt;
  std::string who_waits{};  // the worker's Study, "team/digits"; "" = not known
  api::Place place = api::Place::kLocal;
  bool may_grow = true;  // false: its queue would preempt a trial that grows
  // On a cluster: the GPU profile that its trials use now; null = unknown, or CPU.
  std::shared_ptr<const api::GpuChoice> gpu = nullptr;
  std::optional<double> gpu_memory{};  // most bytes of one GPU that a worker has; absent = any
  // When the GPU profiles last changed; 0 = not since the operator started.
  std::int64_t gpu_changed_ms = 0;
};

struct StudyView {
  const api::Study& study;
  const std::vector<api::TrialPtr>& trials;  // all of them, sorted by spec.index
  Capacity capacity;
};

// A run as clusters, single machines and the simulator can all describe it.
enum class RunState { kPending, kRunning, kExited };

struct Run {
  std::int64_t id = 0;
  std::int64_t workers = 1;  // wanted now
  // How many of them run now; absent: all if the run is Running, else none.
  std::optional<std::int64_t> running_workers;
  std::optional<double> gpus;         // of each worker; absent: as the Study says
  std::int64_t unplaced_workers = 0;  // wanted, and without a node
  std::int64_t until_step = 0;        // the step it was asked to reach; 0 = as the Trial says
  RunState state = RunState::kPending;
  bool terminating = false;  // Exited, but some of its workers still live: no other run may begin
  // Pending: why it waits. Running: why some workers have no place, or why its output cannot be
  // read. Exited: the explanation of its end.
  std::string reason;
  std::string silence;  // Exited without a report: the fault of its output, if known
  // Why some of its output could not be read, which leaves its reports there unknown. "" = all of
  // it was read, or is still being read.
  std::string read_error;
  std::string pod_uid;
  std::int64_t started_ms = 0;  // when it began to run; 0 = unknown
  std::int64_t seen_ms = 0;     // when it was first seen running, if its record may wait; else 0
  std::int64_t ended_ms = 0;    // Exited. Running: it has ended, and its output is still read
  std::optional<api::Outcome> outcome;  // Exited
  std::optional<int> exit_code;         // Exited: of rank 0, if it ended by itself
  bool presumed = false;  // Disrupted by its exit code alone: nothing else says what ended it
  // Exited because its GPU's memory was too small: bytes needed at least; 0 = it does not say.
  std::optional<double> gpu_memory_short;
  std::optional<api::Report> report;  // newest report read from its output, if it reports there
  // Times by our own clock, because the clock of the process that reports may differ.
  std::int64_t heard_ms = 0;            // its newest report was first seen; 0 = as the report says
  std::optional<std::int64_t> read_ms;  // all output up to here was read; absent = it is not read
  // A queue preempted it. Pending: the queue will start it again. Exited, with kDisrupted: the
  // preemption ended it, and the next run waits in the queue.
  bool queued = false;
};

struct TrialView {
  const api::Study& study;
  const api::Trial& trial;
  const std::vector<Run>& runs;  // existing now
};

// ---- Actions -----------------------------------------------------------------------------------

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
// The Study ended spec.ttlAfterFinished ago: delete it and its trials, if the Store deletes any.
struct DeleteStudy {};
struct UpdateTrialStatus {
  api::TrialStatus status;
};
// With spec.workers workers, up to spec.until_step.
struct StartRun {
  std::int64_t run = 0;
  // Read the trial without a cache first, and start only if it is still the object that was
  // planned. Needed if no status write, which would fail on a stale view, comes before it.
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
  bool is_cut = false;  // kMaxWrites was reached (study_plan.h): the next plan continues here
};

struct TrialPlan {
  std::vector<TrialAction> actions;
  std::optional<std::int64_t> wake_at_ms;
};

}  // namespace fettle::core
