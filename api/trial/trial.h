// Trial: one point of a Study's space, and its results (fettle.dev/v1alpha1).
//
// Writers: the operator (locally the runner) writes spec and status, except status.report, which
// belongs to the process that observes the training. Facts and decisions: before the core uses an
// observation, it stores it as a Fact whose `seq` is 1 + the highest one of the Study; every
// decision (SearchOrigin, Stop) stores `basis`, the highest seq it saw. So the order of
// observations is recorded, and the facts allow the same decisions to be taken again. Value types:
// safe to share while no thread changes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/meta/metadata.h"
#include "api/meta/status_condition.h"
#include "base/json.h"

namespace fettle::api {

// The decision to resume a trial that paused at a rung.
struct TrialPromotion {
  std::int64_t basis = 0;
  std::int64_t until_step = 0;
  bool operator==(const TrialPromotion&) const = default;
};

// A trial's origin and the rung it was sent to, for replay. Rungs count from 0, the lowest.
struct SearchOrigin {
  std::int64_t basis = 0;
  std::int64_t bracket = 0;  // the rung it began at
  std::int64_t rung = 0;     // the rung it was last sent to
  std::vector<TrialPromotion> promotions;
  std::string replaces;    // the trial whose place it took in a population; "" = none
  std::string replicates;  // the trial that it repeats with another seed; "" = none
  bool operator==(const SearchOrigin&) const = default;
};

// Weights to start from: another trial's checkpoint (population-based training, warm weights).
struct Parent {
  std::string trial;
  std::int64_t step = 0;
  bool operator==(const Parent&) const = default;
};

// The decision to end a trial before untilStep.
struct Stop {
  std::string reason;  // EarlyStopped, GoalReached, BudgetSpent, TooManyFailures
  std::string message;
  std::int64_t basis = 0;
  bool operator==(const Stop&) const = default;
};

// The last decision of the elastic policy on the number of workers (core/study/elastic.h).
struct Sizing {
  std::int64_t at_ms = 0;
  std::int64_t workers = 1;
  // How many trials of the Study had ended when the policy found no room for more workers; absent:
  // there was room.
  std::optional<std::int64_t> no_room_after;
  bool operator==(const Sizing&) const = default;
};

struct TrialSpec {
  // Defined in trial.cpp, to compile this long code once (docs/decisions/0027).
  TrialSpec();
  TrialSpec(const TrialSpec& other);
  TrialSpec(TrialSpec&& other) noexcept;
  TrialSpec& operator=(const TrialSpec& other);
  TrialSpec& operator=(TrialSpec&& other) noexcept;
  ~TrialSpec();

  std::string study;
  std::int64_t index = 0;            // 0, 1, 2 ... within the Study
  Json parameters = Json::object();  // active parameters only; never changes
  std::int64_t seed = 0;             // the trainer's seed
  std::int64_t until_step = 1;       // only grows
  std::int64_t workers = 1;          // wanted now
  std::optional<Sizing> sizing;      // absent: the policy has not changed it
  // Bytes for each worker of its next run, if the Study says gpu: {memory: auto}. Only grows.
  std::optional<double> gpu_memory;
  std::optional<Parent> parent;
  SearchOrigin search;
  std::optional<Stop> stop;
  bool suspend = false;  // stop gently, keep the checkpoint, resume later
  bool operator==(const TrialSpec&) const = default;
};

// How a run ended.
enum class Outcome {
  kSucceeded,    // exit 0
  kFailed,       // the trial's own fault: non-zero exit, no usable metric, bad template
  kTimedOut,     // longer than trial.timeout
  kHung,         // no report for trial.heartbeat
  kOutOfMemory,  // over its own memory limit
  kDisrupted,    // not its fault: preempted, node lost, runner killed
  kStopped,      // we asked it to stop
};
EnumNames<Outcome> names_of(Outcome /*any*/);

inline constexpr std::size_t kMaxPromotions = 100;
inline constexpr std::size_t kMaxRunRecords = 20;
inline constexpr std::size_t kMaxHistoryPoints = 50;

// The number of workers of a run that really run from then on; 0: none, it waits for a node.
struct Resize {
  std::int64_t at_ms = 0;
  std::int64_t workers = 1;
  bool operator==(const Resize&) const = default;
};
inline constexpr std::size_t kMaxResizes = 50;

// RunRecord::reason of a disruption by the queue, which may preempt any number of times.
inline constexpr const char* kPreempted = "Preempted";

inline constexpr std::int64_t kMaxTrialIndex = 1'000'000;

// One run of a trial, from intent to outcome. Old records are pruned, so each carries the numbers
// that would be lost with its predecessors: the newest alone says how many retries are spent.
struct RunRecord {
  std::int64_t run = 0;
  std::string pod_uid;               // of rank 0; local: "<uid of the trial>-r<run>"
  std::int64_t workers = 1;          // at its start
  std::optional<double> gpus;        // of each worker: 2, 0.25; absent: as the Study says
  std::optional<double> gpu_memory;  // TrialSpec::gpu_memory at its start
  // Bytes that the run needs at least, if it ended because this was too little; 0: not known.
  std::optional<double> gpu_memory_short;
  std::vector<Resize> resizes;  // in order of time; the newest kMaxResizes
  std::int64_t until_step = 1;  // how far this run was asked to go
  std::int64_t started_ms = 0;  // intent written
  std::int64_t running_ms = 0;  // first seen running; 0 = never
  // Since when some of its workers have found no place; 0 = all have one, or the Study does not
  // size itself.
  std::int64_t unplaced_ms = 0;
  std::int64_t ended_ms = 0;   // 0 = not ended
  std::int64_t last_step = 0;  // the trial's newest reported step when the run ended
  std::int64_t failures = 0;   // earlier runs that failed by the trial's own fault
  // Worker-seconds of all earlier runs, and the part of this run that its other members no longer
  // record (core/facts/run_records.h).
  double earlier_seconds = 0;
  // The same in GPU-seconds; absent: earlier_seconds times the GPUs of a worker.
  std::optional<double> earlier_gpu_seconds;
  std::optional<Outcome> stopping;  // why we asked it to stop; absent = we did not
  std::optional<Outcome> outcome;
  std::string reason;   // for machines: kPreempted; "" = the outcome says it all
  std::string message;  // for people: "exit code 3: ... last lines of output"
  bool operator==(const RunRecord&) const = default;
};

enum class FactKind {
  kRung,     // objective values at a step that early stopping judges
  kResult,   // the trial's final objective values (non-finite or constraint-breaking: infeasible)
  kStopped,  // ended early by our decision; values: the last ones, if any
  kFailed,   // ended without a result
};
EnumNames<FactKind> names_of(FactKind /*any*/);

struct Fact {
  std::int64_t seq = 0;  // 1, 2, 3 ... within the Study
  FactKind kind = FactKind::kResult;
  std::int64_t step = 0;
  std::vector<std::optional<double>> values;  // one an objective; absent = non-finite or missing
  bool infeasible = false;
  std::int64_t at_ms = 0;
  // Cost of the trial at its end, if the search counts cost: GPU-seconds of all workers and runs,
  // or worker-seconds without GPUs. Absent: not known.
  std::optional<double> cost = std::nullopt;
  bool operator==(const Fact&) const = default;
};

// One point of the learning curve: step, and metric name to value.
struct HistoryPoint {
  std::int64_t step = 0;
  std::map<std::string, double> metrics;
  bool operator==(const HistoryPoint&) const = default;
};

// The last report of a training on itself. At most 4 KiB as JSON.
struct Report {
  std::int64_t step = 0;
  std::map<std::string, double> metrics;  // newest values
  std::string checkpoint;                 // newest durable checkpoint, "" = none
  std::int64_t checkpoint_step = 0;
  bool final_result = false;  // the trainer says it reached untilStep
  std::int64_t at_ms = 0;
  std::string objective;              // for display: the newest objective values, "0.9132"
  std::string throughput;             // for display: "4120 images/s"
  std::string waiting;                // for people: why it is not training; "" = no wait
  std::vector<HistoryPoint> history;  // at most 50, thinned; rungs and results kept
  bool operator==(const Report&) const = default;
};

// Terminal phases are Completed, Stopped, Failed; they are never left, except Completed -> Pending
// when until_step grows.
enum class TrialPhase { kPending, kRunning, kPaused, kCompleted, kStopped, kFailed };
EnumNames<TrialPhase> names_of(TrialPhase /*any*/);

struct TrialStatus {
  // Defined in trial.cpp, to compile this long code once (docs/decisions/0027).
  TrialStatus();
  TrialStatus(const TrialStatus& other);
  TrialStatus(TrialStatus&& other) noexcept;
  TrialStatus& operator=(const TrialStatus& other);
  TrialStatus& operator=(TrialStatus&& other) noexcept;
  ~TrialStatus();

  TrialPhase phase = TrialPhase::kPending;
  std::vector<StatusCondition> conditions;  // Complete, Failed, Waiting, with reasons
  std::vector<RunRecord> runs;              // at most 20: the newest
  std::vector<Fact> facts;                  // never pruned
  std::optional<Report> report;
  std::string gpus;  // for display: of all workers, "2", "0.25", "20Gi"; "" = CPU
  bool operator==(const TrialStatus&) const = default;
};

struct Trial {
  Metadata metadata;
  TrialSpec spec;
  TrialStatus status;
  bool operator==(const Trial&) const = default;
};

// Trials are passed around shared and immutable.
using TrialPtr = std::shared_ptr<const Trial>;

inline bool is_terminal(TrialPhase phase) {
  return phase == TrialPhase::kCompleted || phase == TrialPhase::kStopped ||
         phase == TrialPhase::kFailed;
}

}  // namespace fettle::api
