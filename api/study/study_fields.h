// The fields of a Study document (study.h, metadata.h), for reading and writing: name, member,
// description (for kubectl explain and messages) and rules (FieldRules{} if left out). Fields that
// `only_if` looks at come first. A change needs `make crds`. See field.h.
#pragma once

#include "api/fields/field.h"
#include "api/fields/label_syntax.h"
#include "api/study/algorithm.h"
#include "api/study/replicate_fields.h"
#include "api/study/study.h"
#include "api/study/study_names.h"
#include "api/study/study_rules.h"
#include "api/study/trial_template_fields.h"

namespace fettle::api {

template <class Visitor, Like<Metadata> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "Name of the object.", dns_label().needed());
  v.field("namespace", c.ns, "Namespace of the object.", dns_label());
  v.field("uid", c.uid, "Identifies this object among all that ever had its name.", text(0, 64));
  v.field("resourceVersion", c.resource_version, "Version of the object; changes with every write.",
          text(0, 64));
  v.field("generation", c.generation, "Number of times that spec has changed.",
          whole(0, kLargestWhole));
  v.field("creationTimestamp", c.created_ms, "Time of creation.", timestamp());
  v.field("deletionTimestamp", c.deleted_ms, "Time at which deletion was requested.", timestamp());
  v.field("labels", c.labels, "Labels, for selectors.", list(0, 64).of_text(kLongestName));
  v.field("annotations", c.annotations, "Annotations, for other programs.",
          list(0, 64).of_text(65'536));
  for (const std::string_view name : {"managedFields", "ownerReferences", "finalizers", "selfLink",
                                      "generateName", "deletionGracePeriodSeconds"}) {
    v.ignored(name);
  }
}

template <class Visitor, Like<Condition> T>
void visit_fields(Visitor& v, T& c) {
  v.field("parameter", c.parameter, "Name of a parameter declared earlier.",
          text(1, kLongestName).needed());
  v.field("in", c.in, "Values of that parameter for which this one exists.",
          scalars(kMostValues).needed());
}

template <class Visitor, Like<Parameter> T>
void visit_range_fields(Visitor& v, T& c, bool is_integer, bool is_numeric) {
  constexpr std::string_view kNumeric = "type Double or Integer";
  const double largest = is_integer ? static_cast<double>(kLargestWhole) : kLargestBound;
  const FieldRules bound = number(-largest, largest).needed().only_if(is_numeric, kNumeric);
  v.field("min", c.min, "Smallest value, inclusive.", bound);
  v.field("max", c.max, "Largest value, inclusive.", bound);
  v.field("step", c.step, "Distance between values: min, min + step, min + 2 step and so on.",
          above(0, largest).only_if(is_numeric, kNumeric));
  v.field("scale", c.scale, "Linear or Log: the scale on which values are spread evenly.",
          FieldRules{}.only_if(is_numeric, kNumeric));
}

template <class Visitor, Like<Parameter> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "Name of the parameter, unique in the Study.",
          text(1, kLongestName).as(Form::kName).needed());
  v.field("type", c.type, "Type of the values: Double, Integer, Categorical or Boolean.",
          FieldRules{}.needed());
  const bool is_integer = c.type == ParameterType::kInteger;
  visit_range_fields(v, c, is_integer, is_integer || c.type == ParameterType::kDouble);
  v.field("values", c.values, "Values to choose from, all different.",
          scalars(kMostValues)
              .needed()
              .only_if(c.type == ParameterType::kCategorical, "type Categorical"));
  v.field("when", c.when,
          "Condition under which the parameter exists: an earlier parameter has one of the given "
          "values.");
  v.field("sets", c.sets,
          "Field of the built-in trainer that receives the value, such as training.learningRate.",
          text(1, 256));
}

template <class Visitor, Like<Objective> T>
void visit_fields(Visitor& v, T& c) {
  v.field("metric", c.metric, "Name of a metric that trials report.", metric_name().needed());
  v.field("direction", c.direction, "Whether to Maximize or to Minimize the metric.",
          FieldRules{}.needed());
  v.field("goal", c.goal, "Objective value at which the Study ends as succeeded.",
          number(-kLargestBound, kLargestBound));
  v.field("take", c.take, "Which report of a trial counts: Last or Best.");
  v.field("reference", c.reference,
          "With several objectives: the worst value that counts towards the hypervolume. Default: "
          "the worst value seen.",
          number(-kLargestBound, kLargestBound));
}

template <class Visitor, Like<Constraint> T>
void visit_fields(Visitor& v, T& c) {
  v.field("metric", c.metric, "Name of a metric that trials report.", metric_name().needed());
  v.field("min", c.min, "Smallest value allowed; a trial below it is infeasible.", quantity());
  v.field("max", c.max, "Largest value allowed; a trial above it is infeasible.", quantity());
}

template <class Visitor, Like<Resource> T>
void visit_fields(Visitor& v, T& c) {
  v.field("unit", c.unit, "What one step is, such as epoch. For display.",
          text(1, kLongestName).as(Form::kName));
  v.field("min", c.min, "Number of steps that every trial runs before it may be stopped early.",
          whole(1, 1'000'000'000));
  v.field("max", c.max, "Number of steps of a trial that is not stopped early.",
          whole(1, 1'000'000'000));
}

template <class Visitor, Like<ScheduleLeg> T>
void visit_fields(Visitor& v, T& c) {
  v.field("untilStep", c.until_step, "Step at which the leg ends.",
          whole(1, 1'000'000'000).needed());
  v.field("parameters", c.parameters, "Values of the active parameters.",
          FieldRules{}.as(Form::kObject).needed());
  v.field("seed", c.seed, "Seed of the trainer. Default: a different one for each trial.",
          whole(0, kLargestWhole));
}

template <class Visitor, Like<Algorithm> T>
void visit_population_fields(Visitor& v, T& c) {
  const AlgorithmTraits& is = traits(c.name);
  const std::string_view populations = algorithms_with<&AlgorithmTraits::population>();
  v.field("interval", c.interval,
          "Number of steps between two comparisons of the population. Default: a tenth of "
          "resource.max.",
          whole(1, 1'000'000'000).only_if(is.population, populations));
  v.field("quantile", c.quantile,
          "Share of the population that is replaced at each comparison. Copies of the best trials "
          "replace the worst.",
          above(0, 0.5).only_if(is.population, populations));
  v.field("resampleProbability", c.resample_probability,
          "Probability that a value of a copied trial is drawn again instead of perturbed.",
          number(0, 1).only_if(is.resamples, algorithms_with<&AlgorithmTraits::resamples>()));
  v.field("legs", c.legs, "Parameters to train with, leg after leg.",
          list(1, static_cast<std::size_t>(kMostIntervals))
              .needed()
              .only_if(is.replays, algorithms_with<&AlgorithmTraits::replays>()));
}

template <class Visitor, Like<Algorithm> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "Algorithm that chooses the parameters of the trials.");
  const AlgorithmTraits& is = traits(c.name);
  const std::string_view models = algorithms_with<&AlgorithmTraits::fits_model>();
  const std::string_view grids = algorithms_with<&AlgorithmTraits::walks_grid>();
  v.field("seed", c.seed,
          "Seed of the search. The same seed and the same results give the same points.",
          whole(0, kLargestWhole));
  v.field("startupTrials", c.startup_trials,
          "Number of trials at Sobol points before the model is used. Default: 10; with gp and "
          "ehvi it depends on the space.",
          whole(0, kMaxStartupTrials).only_if(is.fits_model, models));
  v.field("candidates", c.candidates,
          "Number of candidates evaluated for each suggestion. Default: 24; with gp and ehvi 1000.",
          whole(1, kMaxCandidates).only_if(is.fits_model, models));
  v.field("points", c.points, "Number of points along a Double that has no step. Default: 10.",
          whole(kMinGridPoints, kMaxGridPoints).only_if(is.walks_grid, grids));
  v.field("shuffle", c.shuffle,
          "Whether to visit the grid in a random order, which depends on the seed.",
          FieldRules{}.only_if(is.walks_grid, grids));
  v.field("populationSize", c.population_size,
          "Number of trials in a generation. Default: 20 with nsga2; with cmaes it grows with the "
          "number of parameters.",
          whole(kMinPopulation, kMaxPopulation)
              .only_if(is.breeds, algorithms_with<&AlgorithmTraits::breeds>()));
  v.field("reductionFactor", c.reduction_factor,
          "Reduction factor N: one trial in N is promoted to the next rung.",
          above(1, 1000).only_if(is.halves, algorithms_with<&AlgorithmTraits::halves>()));
  visit_population_fields(v, c);
  v.field("costAware", c.cost_aware,
          "Whether to weigh the expected gain of a trial against the GPU-seconds that it is "
          "predicted to cost.",
          FieldRules{}.only_if(is.counts_cost, algorithms_with<&AlgorithmTraits::counts_cost>()));
}

template <class Visitor, Like<EarlyStopping> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name,
          "Rule that stops poor trials early. none: every trial runs to its end, even with "
          "algorithm auto.",
          FieldRules{}.needed());
  const StoppingTraits& is = traits(c.name);
  const std::string_view rungs = stopping_rules_with<&StoppingTraits::has_rungs>();
  const bool curve = c.name == StoppingKind::kCurve;
  v.field("reductionFactor", c.reduction_factor,
          "Reduction factor N: one trial in N is promoted to the next rung.",
          above(1, 1000).only_if(is.has_rungs, rungs));
  v.field("promote", c.promote,
          "Whether to pause trials at rungs and resume the best from their checkpoints, instead of "
          "stopping the rest.",
          FieldRules{}.only_if(is.has_rungs, rungs));
  v.field(
      "minTrials", c.min_trials,
      "Number of other trials to compare with before any trial is stopped.",
      whole(1, 1'000'000).only_if(is.compares, stopping_rules_with<&StoppingTraits::compares>()));
  v.field("startStep", c.start_step, "First step at which a trial may be stopped.",
          whole(1, 1'000'000'000)
              .only_if(is.has_start, stopping_rules_with<&StoppingTraits::has_start>()));
  v.field("percentile", c.percentile,
          "Percentage of trials that continue; these are the best ones.",
          above(0, 100).only_if(c.name == StoppingKind::kPercentile, "name: percentile"));
  v.field("patience", c.patience,
          "Number of reports without improvement after which a trial is stopped.",
          whole(1, 1'000'000).only_if(c.name == StoppingKind::kPatience, "name: patience"));
  v.field("threshold", c.threshold,
          "Objective value that a trial must reach; one that is worse is stopped.",
          number(-kLargestBound, kLargestBound)
              .needed()
              .only_if(c.name == StoppingKind::kThreshold, "name: threshold"));
  v.field("probability", c.probability,
          "Smallest probability of ending among the best at which a trial continues.",
          above(0, 1).only_if(curve, "name: curve"));
  v.field("top", c.top, "Number of results that count as the best.",
          whole(1, 1'000'000).only_if(curve, "name: curve"));
}

template <class Visitor, Like<Budget> T>
void visit_fields(Visitor& v, T& c) {
  v.field("trials", c.trials,
          "Maximum number of trials to create. With pbt and pb2: the size of the population.",
          whole(1, kNoTrialLimit));
  v.field("parallelism", c.parallelism, "Maximum number of trials that run at the same time.",
          whole(1, 1000));
  v.field("failures", c.failures,
          "Number of failed trials that the Study tolerates; one more ends it.",
          whole(0, kNoTrialLimit));
  v.field("wallTime", c.wall_time,
          "Limit on the time during which at least one trial is running. The Study ends when it is "
          "used up.",
          duration_above_zero());
  v.field("gpuHours", c.gpu_hours,
          "Limit on the total GPU-hours of all trials. The Study ends when they are used up.",
          above(0, 1e9));
}

template <class Visitor, Like<WarmStart> T>
void visit_fields(Visitor& v, T& c) {
  v.field("studies", c.studies, "Names of earlier Studies whose results the search learns from.",
          {.form = Form::kDnsLabel, .max_size = 5, .min_text = 1, .max_text = kLongestStudyName});
  v.field("map", c.map,
          "For each renamed parameter of this Study: its name in the earlier Studies.",
          list(0, kMostParameters).of_text(kLongestName));
  v.field("points", c.points,
          "Points to try first. Parameters that a point leaves out are drawn at random.",
          list(0, kMostFirstPoints).as(Form::kObject));
  v.field("results", c.results,
          "File of results from elsewhere, one a line, beside the Study's file. The command line "
          "reads it into known; a cluster does not.",
          text(0, 1024));
  v.field("known", c.known, "Results from elsewhere that the search learns from.",
          list(0, kMostKnownResults).as(Form::kObject));
}

template <class Visitor, Like<StudySpec> T>
void visit_fields(Visitor& v, T& c) {
  v.field("objectives", c.objectives,
          "Metrics to optimise. With more than one, the Study looks for the Pareto front, and "
          "early stopping uses the first.",
          list(1, kMostObjectives).needed());
  v.field("parameters", c.parameters, "Parameters to vary.", list(1, kMostParameters).needed());
  v.field("constraints", c.constraints, "Limits on metrics. A trial outside them is infeasible.",
          list(0, kMostConstraints));
  v.field("resource", c.resource, "What one step is, and how many a trial takes.");
  v.field("algorithm", c.algorithm, "How the parameters of the next trial are chosen.");
  v.field("earlyStopping", c.early_stopping,
          "Rule that stops poor trials early. Left out: no rule, or with algorithm auto the one "
          "that it chooses.");
  v.field("budget", c.budget, "Limits at which the Study ends.");
  v.field("trial", c.trial, "How a trial runs: its program and its resources.",
          FieldRules{}.needed());
  v.field("warmStart", c.warm_start, "Earlier results to learn from, and points to try first.");
  v.field("replicates", c.replicates,
          "Further runs of the best configurations with other seeds, once the search is over. They "
          "show how much of a result is luck, and do not count in budget.trials. One objective "
          "only.");
  v.field("suspend", c.suspend,
          "Whether the Study is suspended: its trials stop at a checkpoint, and resume once this "
          "is false.");
  v.field(
      "ttlAfterFinished", c.ttl_after_finished,
      "Time after its end at which a cluster deletes the Study, with its trials. Left out: never.",
      number(0, kLongestDuration).as(Form::kDuration));
}

template <class Visitor, Like<StatusCondition> T>
void visit_fields(Visitor& v, T& c) {
  v.field("type", c.type, "Type of the condition.", text(1, 316).needed());
  v.field("status", c.status, "Whether the condition holds: True or False.",
          FieldRules{}.as(Form::kConditionStatus));
  v.field("reason", c.reason, "Reason in one word, for programs.", message_text(256));
  v.field("message", c.message, "Explanation, for people.", message_text(kLongestMessage));
  v.field("lastTransitionTime", c.since_ms, "Time at which status last changed.", timestamp());
}

template <class Visitor, Like<TrialCounts> T>
void visit_fields(Visitor& v, T& c) {
  const FieldRules count = whole(0, kLargestWhole);
  v.field("created", c.created, "Number of trials created.", count);
  v.field("pending", c.pending, "Number of trials that wait to run.", count);
  v.field("running", c.running, "Number of trials that are running.", count);
  v.field("completed", c.completed, "Number of trials that reached their last step.", count);
  v.field("stopped", c.stopped, "Number of trials stopped early.", count);
  v.field("failed", c.failed, "Number of trials that failed.", count);
  v.field("infeasible", c.infeasible,
          "Number of completed trials whose result is not finite or violates a constraint.", count);
  v.field("replicates", c.replicates,
          "Number of replicates among the trials created: further runs of the best configurations.",
          count);
}

template <class Visitor, Like<BestTrial> T>
void visit_fields(Visitor& v, T& c) {
  v.field("trial", c.trial, "Name of the trial.", text(0, kLongestName));
  v.field("step", c.step, "Step at which the objectives were measured.", whole(0, kLargestWhole));
  v.field("objectives", c.objectives, "Objective values, in the order of spec.objectives.",
          list(0, kMostObjectives));
  v.field("parameters", c.parameters, "Parameters of the trial.", FieldRules{}.as(Form::kObject));
  v.field("replicates", c.replicates,
          "What its replicates have shown. Absent before one has ended.");
}

template <class Visitor, Like<PriorObservation> T>
void visit_fields(Visitor& v, T& c) {
  v.field("trial", c.trial, "Name of the trial.", text(0, kLongestName));
  v.field("parameters", c.parameters,
          "Parameters of the trial, under the names that this Study gives them.",
          FieldRules{}.as(Form::kObject));
  v.field("values", c.values, "Objective values, in the order of spec.objectives.",
          list(0, kMostObjectives));
}

template <class Visitor, Like<SearchPeriod> T>
void visit_fields(Visitor& v, T& c) {
  v.field("since", c.since, "Index of the first trial that was chosen this way.",
          whole(0, kLargestWhole));
  v.field("basis", c.basis, "Highest seq of a fact that was known when this was decided.",
          whole(0, kLargestWhole));
  v.field("algorithm", c.algorithm, "Algorithm in use; with algorithm auto, the one that it chose.",
          text(0, kLongestName));
  v.field("earlyStopping", c.early_stopping, "Early-stopping rule that auto chose.",
          text(0, kLongestName));
  v.field("trials", c.trials, "Value of budget.trials when this was decided.",
          whole(0, kLargestWhole));
  v.field("parallelism", c.parallelism, "Value of budget.parallelism when this was decided.",
          whole(0, kLargestWhole));
  v.field("maxCost", c.max_cost, "With costAware: limit on the total cost of all trials.",
          number(0, kLargestBound));
  v.field("reason", c.reason, "Why auto chose this algorithm.", message_text(512));
  v.field("steps", c.steps, "What auto decided about stopping trials early, and why.",
          message_text(512));
  v.field("computedBy", c.computed_by,
          "Version of Fettle, processor and mathematical library with which this was decided.",
          message_text(256));
  v.field("durableCheckpoints", c.durable_checkpoints,
          "Whether checkpoints outlive a pod. If not, a trial that is interrupted or promoted "
          "starts again from the first step.");
  v.field("revision", c.revision, "Revision of the search algorithms; 1 if absent.",
          whole(1, kLargestWhole));
}

template <class Visitor, Like<GpuChoice> T>
void visit_fields(Visitor& v, T& c) {
  v.field("profile", c.profile, "Name of the profile.", message_text(kLongestName));
  v.field("sharing", c.sharing, "Way in which GPUs are shared.", message_text(kLongestName));
  v.field("enforces", c.enforces, "Mechanism that confines a pod to its share.",
          message_text(kLongestName));
  v.field("gpus", c.gpus, "Number of GPUs of each worker.", number(0, 1024));
  v.field("memory", c.memory, "GPU memory of each worker.", number(0, 1e15).as(Form::kQuantity));
  v.field("reason", c.reason, "Why this profile was chosen.", message_text(1024));
}

template <class Visitor, Like<StudyDisplay> T>
void visit_fields(Visitor& v, T& c) {
  v.field("state", c.state, "State of the Study, in words.", message_text(64));
  v.field("best", c.best, "Objective values of the best trial.", message_text(256));
  v.field("gpuHours", c.gpu_hours, "GPU-hours used so far.", message_text(64));
  v.field("eta", c.eta, "Estimated time to the end.", message_text(64));
}

template <class Visitor, Like<StudyStatus> T>
void visit_fields(Visitor& v, T& c) {
  const FieldRules amount = number(0, kLargestBound);
  v.field("observedGeneration", c.observed_generation,
          "Generation of the spec that was last acted on; -1 before the first.",
          whole(-1, kLargestWhole));
  v.field("updateTime", c.updated_ms, "Time at which this status was written.", timestamp());
  v.field("conditions", c.conditions,
          "Conditions: Running, Suspended, Succeeded, Failed and others.", list(0, 16));
  v.field("trials", c.trials, "Number of trials in each state.");
  v.field("best", c.best,
          "The best trial; with several objectives, as much of the Pareto front as fits in 64 KiB.",
          list(0, kMaxFront));
  v.field("priorObservations", c.prior_observations,
          "Results of earlier Studies, copied at the start.", list(0, kMaxPriorObservations));
  v.field("search", c.search, "Algorithms that chose the trials, each with its first trial.",
          list(0, kMostSearchPeriods));
  v.field("hypervolume", c.hypervolume,
          "Hypervolume of the Pareto front with respect to the reference values.", amount);
  v.field("firstReport", c.first_report,
          "First step that trials report, where it comes after the lowest rung.",
          whole(0, kLargestWhole));
  v.field("algorithm", c.algorithm, "Description of the sampler in use.", message_text(1024));
  v.field("gpuHours", c.gpu_hours, "GPU-hours used so far.", amount);
  v.field("activeSeconds", c.active_seconds, "Seconds during which at least one trial was running.",
          amount);
  v.field("gpu", c.gpu, "How the cluster provides the GPUs of the trials.");
  v.field("startTime", c.started_ms, "Time at which the first trial was created.", timestamp());
  v.field("completionTime", c.ended_ms, "Time at which the Study ended.", timestamp());
  v.field("etaSeconds", c.eta_seconds, "Estimated time to the end.", amount);
  v.field("progress", c.progress,
          "Number of trials that have ended and number planned, such as 12/20; 12 if the number is "
          "not limited.",
          message_text(64));
  v.field("display", c.display, "Values for the columns of kubectl get.");
}

template <class Visitor, Like<Study> T>
void visit_fields(Visitor& v, T& c) {
  v.constant("apiVersion", kApiVersion);
  v.constant("kind", "Study");
  v.field("metadata", c.metadata, "Metadata of the Study; the name is at most 40 bytes long.",
          FieldRules{}.needed());
  v.field("spec", c.spec, "What to vary, what to measure and what to spend.",
          FieldRules{}.needed());
  v.field("status", c.status, "State of the object, written by Fettle.");
}

}  // namespace fettle::api
