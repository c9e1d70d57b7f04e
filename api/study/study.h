// Study: what to vary, what to measure, what to spend (fettle.dev/v1alpha1).
//
// Plain values with the defaults that a document gets when it leaves a field out. Reading, writing,
// defaulting and validating live in study_json.h, so that everything else can hold a Study without
// knowing JSON or YAML. A Study that came from read_study() is valid: code below `api` relies on
// it. Durations are seconds, quantities (memory) are plain numbers; both are written as people
// write them ("2h", "20Gi") in documents. Value types: safe to share while no thread changes
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/meta/metadata.h"
#include "api/meta/status_condition.h"
#include "api/study/algorithm.h"
#include "api/trainer/trainer_config.h"
#include "base/json.h"

namespace fettle::api {

// ---- What to vary ------------------------------------------------------------------------------

enum class ParameterType { kDouble, kInteger, kCategorical, kBoolean };
EnumNames<ParameterType> names_of(ParameterType /*any*/);
enum class Scale { kLinear, kLog };
EnumNames<Scale> names_of(Scale /*any*/);

// The parameter exists in a trial only if `parameter` (declared earlier) is active and has one of
// the values `in`.
struct Condition {
  std::string parameter;
  std::vector<Json> in;
  bool operator==(const Condition&) const = default;
};

struct Parameter {
  std::string name;
  ParameterType type = ParameterType::kDouble;
  double min = 0;  // Double, Integer: bounds, both included. Integers: |x| <= 2^53
  double max = 0;
  std::optional<double> step;  // values are min, min + step, ...; Integer without step: 1
  Scale scale = Scale::kLinear;
  std::vector<Json> values;  // Categorical: distinct scalars
  std::optional<Condition> when;
  std::string sets;  // field of the built-in trainer, e.g. "training.learningRate"; or ""
  bool operator==(const Parameter&) const = default;
};

// ---- What to measure ---------------------------------------------------------------------------

enum class Direction { kMinimize, kMaximize };
EnumNames<Direction> names_of(Direction /*any*/);
// Which of a trial's reports is its objective: the one at its last step, or the best one.
enum class Take { kLast, kBest };
EnumNames<Take> names_of(Take /*any*/);

struct Objective {
  std::string metric;
  Direction direction = Direction::kMinimize;
  std::optional<double> goal;
  Take take = Take::kLast;
  // With several objectives: the worst value that counts in the hypervolume; absent = the worst
  // seen.
  std::optional<double> reference = std::nullopt;
  bool operator==(const Objective&) const = default;
};

struct Constraint {
  std::string metric;
  std::optional<double> min;
  std::optional<double> max;
  bool operator==(const Constraint&) const = default;
};

// The unit of `step`: reports, rungs and untilStep are in it. A trial runs from 0 to max.
struct Resource {
  std::string unit = "epoch";
  std::int64_t min = 1;
  std::int64_t max = 1;
  bool operator==(const Resource&) const = default;
};

// ---- How to search -----------------------------------------------------------------------------

// Bounds that validation and the samplers share.
inline constexpr std::int64_t kMaxStartupTrials = 1'000'000;
inline constexpr std::int64_t kMaxCandidates = 100'000;
inline constexpr std::int64_t kMinGridPoints = 2;  // a Double has two ends
inline constexpr std::int64_t kMaxGridPoints = 1'000'000;
inline constexpr std::int64_t kMinPopulation = 4;
inline constexpr std::int64_t kMaxPopulation = 1000;

// The fewest trials of a population, and the most comparisons: each promotion is stored.
inline constexpr std::int64_t kLeastMembers = 2;
inline constexpr std::int64_t kMostIntervals = 100;

// schedule: parameters for a stretch of the training, which begins where the previous leg ended.
struct ScheduleLeg {
  std::int64_t until_step = 1;
  Json parameters = Json::object();
  std::optional<std::int64_t> seed;  // of the trainer; absent: by the trial's index
  bool operator==(const ScheduleLeg&) const = default;
};

struct Algorithm {
  AlgorithmKind name = AlgorithmKind::kAuto;
  std::int64_t seed = 0;
  std::optional<std::int64_t> startup_trials;  // tpe, gp: trials before the model is used
  std::optional<std::int64_t> candidates;      // tpe, gp: candidates for each suggestion
  std::optional<std::int64_t> points;          // grid: points along a Double without a step
  bool shuffle = false;                        // grid: visit the grid in a seeded random order
  std::optional<std::int64_t> population_size = std::nullopt;  // cmaes, nsga2: of a generation
  double reduction_factor = 3;             // hyperband, bohb: one trial in N is promoted
  std::optional<std::int64_t> interval{};  // pbt, pb2: steps between comparisons
  double quantile = 0.25;              // pbt, pb2: this share is replaced, by as many of the best
  double resample_probability = 0.25;  // pbt: chance to draw a value again, not perturb it
  std::vector<ScheduleLeg> legs{};     // schedule
  bool cost_aware = false;             // auto, gp, ehvi: weighs gain against cost
  bool operator==(const Algorithm&) const = default;
};

struct EarlyStopping {
  StoppingKind name = StoppingKind::kNone;
  double reduction_factor = 3;        // asha: one trial in N continues from each rung
  std::int64_t min_trials = 5;        // median, percentile, curve: others needed to compare with
  std::int64_t start_step = 1;        // all but asha: no trial is stopped before this step
  bool promote = false;               // asha: trials pause at rungs, the best resume later
  double percentile = 33;             // percentile: the best N percent continue
  std::int64_t patience = 5;          // patience: reports without an improvement
  std::optional<double> threshold{};  // threshold: worse values stop a trial
  double probability = 0.05;          // curve: stops a trial less likely to end among the best
  std::int64_t top = 1;               // curve: size of "the best"
  bool operator==(const EarlyStopping&) const = default;
};

// ---- What to spend -----------------------------------------------------------------------------

// The largest budget.trials and budget.failures. A Study with so large a number has no limit.
inline constexpr std::int64_t kNoTrialLimit = 1'000'000;

struct Budget {
  std::int64_t trials = 20;         // trials created
  std::int64_t parallelism = 1;     // trials at once
  std::int64_t failures = 5;        // failed trials that are still accepted
  std::optional<double> wall_time;  // seconds in which at least one trial was running
  std::optional<double> gpu_hours;
  bool operator==(const Budget&) const = default;
};

// ---- How a trial runs --------------------------------------------------------------------------

// Finds metrics of images that neither print JSON lines nor use the reporter: each match of `regex`
// in the output is a metric. Groups 1 and 2 are its name and value, or the named groups `name`,
// `value`.
struct MetricsFilter {
  std::string regex;
  std::string step = {};        // a regex whose first group is the step; "" = none
  std::int64_t first_step = 1;  // number of the program's first step: 0 or 1
  bool operator==(const MetricsFilter&) const = default;
};

// On a cluster, checkpoints are on a claim of the user, or on one made for the Study; without
// either they are deleted with their pod. Local runs use only `keep`.
struct Checkpoints {
  std::string claim;           // a PersistentVolumeClaim; its contents stay
  std::optional<double> size;  // bytes of a claim made for the Study and deleted with it
  std::string storage_class;   // of the claim that is made; "" = the default
  std::string access_mode = "ReadWriteOnce";  // of the claim that is made
  std::int64_t keep = 2;                      // newest checkpoints kept for each trial
  bool operator==(const Checkpoints&) const = default;
};

// GPUs of each worker: exactly one of count, fraction and memory.
struct Gpu {
  std::optional<std::int64_t> count;
  std::optional<double> fraction;  // in (0, 1)
  std::optional<double> memory;    // bytes; kAutoAmount: what each training needs
  std::string model = {};          // words of the card's name, "H100"; "" = any card
  bool operator==(const Gpu&) const = default;
};

// Who decides how many workers a trial has, between min and max.
// A run trains in a process of its own, or in a worker, a process that trains one run after another
// (docs/worker-protocol.md). kAuto: see trains_warm() (resolve.h).
enum class Execution { kAuto, kProcess, kWarm };
EnumNames<Execution> names_of(Execution /*any*/);

enum class WorkersSizing { kAuto, kManual };
EnumNames<WorkersSizing> names_of(WorkersSizing /*any*/);

struct Workers {
  std::int64_t min = 1;
  std::int64_t max = 1;
  std::optional<WorkersSizing> sizing = {};  // absent: see core/study/elastic.h
  bool operator==(const Workers&) const = default;
};

enum class TolerationOperator { kEqual, kExists };
EnumNames<TolerationOperator> names_of(TolerationOperator /*any*/);
enum class TaintEffect { kNoSchedule, kPreferNoSchedule, kNoExecute };
EnumNames<TaintEffect> names_of(TaintEffect /*any*/);

// A taint that does not keep pods off a node.
struct Toleration {
  std::string key;  // "" = every taint; requires kExists
  TolerationOperator relation = TolerationOperator::kEqual;
  std::string value;                    // kEqual: value of the taint
  std::optional<TaintEffect> effect;    // absent: all of them
  std::optional<std::int64_t> seconds;  // kNoExecute: how long; absent: for ever
  bool operator==(const Toleration&) const = default;
};

// Fields of the built-in trainer's pods beyond those that Fettle sets; a template has its own.
// Objects of Kubernetes are kept as written. Local runs ignore all of it.
struct TrainerPod {
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> node_selector;
  std::vector<Toleration> tolerations;
  Json affinity;
  std::vector<Json> topology_spread;
  std::string scheduler;        // "" = the cluster's default
  std::string runtime_class;    // "" = the node's own
  std::string priority_class;   // "" = the cluster's default
  std::string service_account;  // "" = the one that may report
  Json security_context;
  std::vector<Json> volumes;
  // Fields of its container.
  std::string image_pull_policy;  // "" = by the image's tag
  Json container_security_context;
  Json resources;
  std::vector<Json> volume_mounts;
  std::vector<Json> env;
  std::vector<Json> env_from;
  bool operator==(const TrainerPod&) const = default;
};

struct TrialTemplate {
  std::optional<MetricsFilter> metrics;
  std::optional<double> timeout;    // seconds one run may take
  std::optional<double> heartbeat;  // seconds without a report after which a run counts as hung
  std::int64_t retries = 2;         // runs after failures that were the trial's own fault
  double grace_period = 30;         // seconds between SIGTERM and SIGKILL
  std::optional<Checkpoints> checkpoints;
  std::optional<Gpu> gpu;
  Workers workers;
  std::optional<Execution> execution;  // absent: kAuto
  std::int64_t slots = 0;  // runs that a worker trains at once; 0: auto (slots_of() in resolve.h)
  // Cluster only: the queue that admits a trial, Kueue's LocalQueue or, with gang volcano or kai, a
  // queue of that scheduler; "" = none, the trial starts at once.
  std::string queue;
  std::string queue_priority;  // Kueue's WorkloadPriorityClass; "" = by the pods' PriorityClass
  std::string gang = "auto";   // what places all workers together: one of gang_names()
  // Names of variables in the environment of `fettle run` that its trials see; local runs only.
  std::vector<std::string> pass_environment;
  std::optional<TrainerPod> pod;         // only with trainer
  std::optional<TrainerConfig> trainer;  // exactly one of trainer and pod_template
  Json pod_template;                     // `template`: a pod template, kept as it was written
  bool operator==(const TrialTemplate&) const = default;
};

// Knowledge from before the first trial.
struct WarmStart {
  std::vector<std::string> studies;  // earlier Studies, from whose results the search learns
  std::map<std::string, std::string> map{};  // a parameter's name here to its name there
  std::vector<Json> points{};                // to try first; omitted values are drawn
  std::string results{};      // a file, which the command line reads into `known`; "" = none
  std::vector<Json> known{};  // results from elsewhere, of the form of known_result.h
  bool operator==(const WarmStart&) const = default;
};

// Further runs of the leaders after the search, which show how much of a result is luck
// (docs/decisions/0067).
struct Replicates {
  std::int64_t leaders = 3;  // the best configurations
  std::int64_t runs = 1;     // further runs of each, with other seeds
  bool operator==(const Replicates&) const = default;
};

struct StudySpec {
  // Defined in study.cpp, to compile this long code once (docs/decisions/0027).
  StudySpec();
  StudySpec(const StudySpec& other);
  StudySpec(StudySpec&& other) noexcept;
  StudySpec& operator=(const StudySpec& other);
  StudySpec& operator=(StudySpec&& other) noexcept;
  ~StudySpec();

  std::vector<Objective> objectives;
  std::vector<Parameter> parameters;
  std::vector<Constraint> constraints;
  Resource resource;
  Algorithm algorithm;
  std::optional<EarlyStopping> early_stopping;
  Budget budget;
  TrialTemplate trial;
  std::optional<WarmStart> warm_start;
  std::optional<Replicates> replicates;
  bool suspend = false;
  // Seconds from its end until a cluster deletes the Study and its trials; absent: never. Local
  // runs keep theirs.
  std::optional<double> ttl_after_finished;
  bool operator==(const StudySpec&) const = default;
};

// ---- Its state ---------------------------------------------------------------------------------

struct TrialCounts {
  std::int64_t created = 0;
  std::int64_t pending = 0;
  std::int64_t running = 0;
  std::int64_t completed = 0;  // reached their last step
  std::int64_t stopped = 0;    // early, by a decision
  std::int64_t failed = 0;
  std::int64_t infeasible = 0;  // completed, but non-finite or outside a constraint
  std::int64_t replicates = 0;  // further runs of the leaders, also counted as created
  bool operator==(const TrialCounts&) const = default;
};

inline constexpr std::size_t kMaxFront = 100;  // trials of a Pareto front kept in Study.status

// The results of a trial's replicates. They exclude the value by which the trial was chosen: it was
// selected for being good, and its luck with it.
struct ReplicateResults {
  std::int64_t runs = 0;            // replicates with a feasible result
  std::optional<double> mean;       // of their values; absent without any
  std::optional<double> deviation;  // their sample standard deviation; absent below two
  std::int64_t failed = 0;          // replicates without a feasible result
  bool operator==(const ReplicateResults&) const = default;
};

struct BestTrial {
  std::string trial;
  std::int64_t step = 0;
  std::vector<double> objectives;  // in the order of spec.objectives
  Json parameters;
  std::optional<ReplicateResults> replicates = {};  // absent: none has ended
  bool operator==(const BestTrial&) const = default;
};

// The result of a trial of an earlier Study, as a point of this Study's space.
struct PriorObservation {
  std::string trial;           // its name
  Json parameters;             // active parameters only
  std::vector<double> values;  // one for each objective
  bool operator==(const PriorObservation&) const = default;
};
inline constexpr std::size_t kMaxPriorObservations = 200;

// The settings of the search for all trials from one on, fixed before that trial is created: the
// algorithm that `auto` stands for, the budget on which this rests, and the program that computes
// it. So a raised budget changes no earlier choice, and each choice can be repeated
// (docs/decisions/0038).
struct SearchPeriod {
  std::int64_t since = 0;                         // the index of the first trial
  std::int64_t basis = 0;                         // the highest seq known then
  std::string algorithm;                          // in force; with auto, its choice
  std::string early_stopping;                     // the rule that auto added; "" = none
  std::int64_t trials = 0;                        // budget.trials
  std::int64_t parallelism = 0;                   // budget.parallelism
  std::optional<double> max_cost = std::nullopt;  // with costAware: cost of all trials at most
  std::string reason;       // why auto chose the algorithm; completes "because ..."
  std::string steps;        // what auto decided about steps, and why: a clause
  std::string computed_by;  // search/space/fingerprint.h; "" = not known
  // Whether checkpoints outlive the pods of trials (api/study/place.h); absent: written by an
  // earlier version, which assumed so.
  std::optional<bool> durable_checkpoints = std::nullopt;
  // Revision of the search (search/search.h): the rules by which points follow from the history.
  // Absent: written by an earlier version, which had the first revision.
  std::optional<std::int64_t> revision = std::nullopt;
  bool operator==(const SearchPeriod&) const = default;
};
inline constexpr std::size_t kMostSearchPeriods = 16;

// The source of the trials' GPUs on a cluster: the administrator's profile (gpu_profile.h) chosen
// for the newest runs, and the reason.
struct GpuChoice {
  std::string profile;
  std::string sharing;                          // GpuSharing
  std::string enforces;                         // GpuEnforcement
  double gpus = 1;                              // of each worker: 2, 0.25
  std::optional<double> memory = std::nullopt;  // bytes of each worker; absent: not known
  std::string reason;                           // a sentence
  bool operator==(const GpuChoice&) const = default;
};

// Short texts for the columns of tables.
struct StudyDisplay {
  std::string state;      // "Searching", "Stopping", "Suspended", "Succeeded", "Failed"
  std::string best;       // objective values of the best trial, "0.9132"
  std::string gpu_hours;  // "1.25"
  std::string eta;        // "12m"; "" = not known
  bool operator==(const StudyDisplay&) const = default;
};

// Derived from the trials at every reconcile, never incremented. Does not grow with trials.
struct StudyStatus {
  // Defined in study.cpp, to compile this long code once (docs/decisions/0027).
  StudyStatus();
  StudyStatus(const StudyStatus& other);
  StudyStatus(StudyStatus&& other) noexcept;
  StudyStatus& operator=(const StudyStatus& other);
  StudyStatus& operator=(StudyStatus&& other) noexcept;
  ~StudyStatus();

  std::int64_t observed_generation = 0;  // on a cluster -1 until the operator has seen the Study
  std::int64_t updated_ms = 0;           // when this status was written; at most once a second
  std::vector<StatusCondition> conditions;
  TrialCounts trials;
  std::vector<BestTrial> best;  // one for a single objective; at most 100 of a Pareto front
  // Results of warmStart.studies, written once, before the first trial.
  std::vector<PriorObservation> prior_observations;
  std::vector<SearchPeriod> search;  // by `since`; empty before the first trial
  // With several objectives: the volume between the front and the references, each the objective's
  // own or the worst value of a feasible trial; absent if it is too expensive to compute or not a
  // number.
  std::optional<double> hypervolume;
  // The first step that trials report, if it comes after the lowest rung
  // (core/facts/late_reports.h); absent if trials report by then, and until one has reported.
  std::optional<std::int64_t> first_report;
  std::string algorithm;         // the sampler in use and, for auto, why
  std::optional<GpuChoice> gpu;  // absent: CPU, a local run, or not chosen yet
  double gpu_hours = 0;
  double active_seconds = 0;    // time in which at least one trial was running
  std::int64_t started_ms = 0;  // 0 = not yet
  std::int64_t ended_ms = 0;
  std::optional<double> eta_seconds;
  std::string progress;  // for display, "37/100"
  StudyDisplay display;
  bool operator==(const StudyStatus&) const = default;
};

struct Study {
  Metadata metadata;
  StudySpec spec;
  StudyStatus status;
  bool operator==(const Study&) const = default;
};

}  // namespace fettle::api
