// The fields of a Study document (study.h, metadata.h), for reading and writing. See field.h.
#pragma once

#include "api/field.h"
#include "api/label_syntax.h"
#include "api/names.h"
#include "api/study.h"
#include "api/trainer_fields.h"

namespace fettle::api {

inline constexpr std::string_view kApiVersion = "fettle.dev/v1alpha1";
inline constexpr std::size_t kMostParameters = 128;
inline constexpr std::size_t kMostValues = 256;    // of a categorical parameter
inline constexpr std::size_t kLongestValue = 256;  // bytes
inline constexpr std::size_t kMostObjectives = 8;
inline constexpr std::size_t kMostConstraints = 16;
inline constexpr std::size_t kMostFirstPoints = 100;
inline constexpr std::size_t kLongestStudyName = 40;
inline constexpr std::size_t kLongestName = 63;
inline constexpr std::size_t kLongestMessage = 4096;
inline constexpr std::size_t kMostSelectors = 16;  // of a pod's nodes
inline constexpr std::size_t kMostTolerations = 16;
inline constexpr std::size_t kMostPodLabels = 32;  // and annotations
inline constexpr std::size_t kLongestAnnotation = 4096;
inline constexpr std::size_t kMostSpreads = 16;
inline constexpr std::size_t kMostVolumes = 32;
inline constexpr std::size_t kMostMounts = 64;
inline constexpr std::size_t kMostPodVariables = 256;  // of the environment of a trainer's pod
inline constexpr std::size_t kMostEnvSources = 32;
inline constexpr std::size_t kMostPassedVariables = 64;
inline constexpr std::size_t kLongestVariable = 128;  // bytes of a name
inline constexpr double kLongestDuration = 10.0 * 365 * 86400;

inline FieldRules dns_label() { return text(1, kLongestName).as(Form::kDnsLabel); }
inline FieldRules metric_name() { return text(1, kLongestName).as(Form::kMetricName); }
inline FieldRules label_key() { return text(1, kLongestLabelKey).as(Form::kLabelKey); }
inline FieldRules label_value() { return text(0, kLongestLabelName).as(Form::kLabelValue); }
inline FieldRules dns_subdomain() { return text(1, kLongestDomain).as(Form::kDnsSubdomain); }
inline FieldRules grace_period() { return number(0, 86'400).as(Form::kDuration); }
inline FieldRules duration_above_zero() { return above(0, kLongestDuration).as(Form::kDuration); }
inline FieldRules quantity() { return number(-kLargestBound, kLargestBound).as(Form::kQuantity); }
inline FieldRules scalars(std::size_t most) {
  return list(1, most).as(Form::kScalar).of_text(kLongestValue);
}

template <class Visitor, Like<Metadata> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "A name for the object.", dns_label().needed());
  v.field("namespace", c.ns, "Where it lives.", dns_label());
  v.field("uid", c.uid, "Tells former owners of a name apart.", text(0, 64));
  v.field("resourceVersion", c.resource_version, "Changes with every write.", text(0, 64));
  v.field("generation", c.generation, "Counts changes of spec.", whole(0, kLargestWhole));
  v.field("creationTimestamp", c.created_ms, "When it was created.", timestamp());
  v.field("deletionTimestamp", c.deleted_ms, "When deletion was asked for.", timestamp());
  v.field("labels", c.labels, "For selection.", list(0, 64).of_text(kLongestName));
  v.field("annotations", c.annotations, "For other programs.", list(0, 64).of_text(65'536));
  for (const std::string_view name : {"managedFields", "ownerReferences", "finalizers", "selfLink",
                                      "generateName", "deletionGracePeriodSeconds"}) {
    v.ignored(name);
  }
}

template <class Visitor, Like<Condition> T>
void visit_fields(Visitor& v, T& c) {
  v.field("parameter", c.parameter, "The name of an earlier parameter.",
          text(1, kLongestName).needed());
  v.field("in", c.in, "Values of it for which this parameter exists.",
          scalars(kMostValues).needed());
}

template <class Visitor, Like<Parameter> T>
void visit_range_fields(Visitor& v, T& c, bool is_integer, bool is_numeric) {
  constexpr std::string_view kNumeric = "type Double or Integer";
  const double largest = is_integer ? static_cast<double>(kLargestWhole) : kLargestBound;
  const FieldRules bound = number(-largest, largest).needed().only_if(is_numeric, kNumeric);
  v.field("min", c.min, "The smallest value.", bound);
  v.field("max", c.max, "The largest value.", bound);
  v.field("step", c.step, "Values are min, min + step ...",
          above(0, largest).only_if(is_numeric, kNumeric));
  v.field("scale", c.scale, "Linear or Log.", FieldRules{}.only_if(is_numeric, kNumeric));
}

template <class Visitor, Like<Parameter> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "A name, unique in the Study.",
          text(1, kLongestName).as(Form::kName).needed());
  v.field("type", c.type, "Double, Integer, Categorical or Boolean.", FieldRules{}.needed());
  const bool is_integer = c.type == ParameterType::kInteger;
  visit_range_fields(v, c, is_integer, is_integer || c.type == ParameterType::kDouble);
  v.field("values", c.values, "The values to choose from.",
          scalars(kMostValues)
              .needed()
              .only_if(c.type == ParameterType::kCategorical, "type Categorical"));
  v.field("when", c.when, "The parameter exists only if an earlier one has one of some values.");
  v.field("sets", c.sets, "Field of the built-in trainer that a value goes to.", text(1, 256));
}

template <class Visitor, Like<Objective> T>
void visit_fields(Visitor& v, T& c) {
  v.field("metric", c.metric, "The name of a metric that trials report.", metric_name().needed());
  v.field("direction", c.direction, "Maximize or Minimize.", FieldRules{}.needed());
  v.field("goal", c.goal, "The Study succeeds once a trial reaches it.",
          number(-kLargestBound, kLargestBound));
  v.field("take", c.take, "Which report counts: the last one or the best one.");
  v.field("reference", c.reference,
          "Of several objectives: the worst value that counts in the hypervolume; default: the "
          "worst one seen.",
          number(-kLargestBound, kLargestBound));
}

template <class Visitor, Like<Constraint> T>
void visit_fields(Visitor& v, T& c) {
  v.field("metric", c.metric, "The name of a metric that trials report.", metric_name().needed());
  v.field("min", c.min, "Trials below are infeasible.", quantity());
  v.field("max", c.max, "Trials above are infeasible.", quantity());
}

template <class Visitor, Like<Resource> T>
void visit_fields(Visitor& v, T& c) {
  v.field("unit", c.unit, "What a step counts, for people.", text(1, kLongestName).as(Form::kName));
  v.field("min", c.min, "Steps before early stopping may end a trial.", whole(1, 1'000'000'000));
  v.field("max", c.max, "Steps of a trial that is not stopped.", whole(1, 1'000'000'000));
}

template <class Visitor, Like<ScheduleLeg> T>
void visit_fields(Visitor& v, T& c) {
  v.field("untilStep", c.until_step, "The step at which the leg ends.",
          whole(1, 1'000'000'000).needed());
  v.field("parameters", c.parameters, "Values of the active parameters.",
          FieldRules{}.as(Form::kObject).needed());
  v.field("seed", c.seed, "The trainer's seed; default: another one for each trial.",
          whole(0, kLargestWhole));
}

template <class Visitor, Like<Algorithm> T>
void visit_population_fields(Visitor& v, T& c) {
  constexpr std::string_view kPopulations = "name: pbt or pb2";
  const bool population = is_population(c.name);
  v.field("interval", c.interval,
          "Steps after which trials are compared; default: a tenth of resource.max.",
          whole(1, 1'000'000'000).only_if(population, kPopulations));
  v.field("quantile", c.quantile, "The worst such share is replaced by copies of the best.",
          above(0, 0.5).only_if(population, kPopulations));
  v.field("resampleProbability", c.resample_probability,
          "How likely a value of a copy is drawn anew instead of perturbed.",
          number(0, 1).only_if(c.name == "pbt", "name: pbt"));
  v.field("legs", c.legs, "What is trained with which parameters, one leg after the other.",
          list(1, static_cast<std::size_t>(kMostIntervals))
              .needed()
              .only_if(c.name == "schedule", "name: schedule"));
}

template <class Visitor, Like<Algorithm> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "What chooses the points.", one_of(algorithm_names()));
  const bool tpe = c.name == "tpe" || c.name == "bohb";
  const bool gp = c.name == "gp" || c.name == "ehvi";
  const bool model = tpe || gp;
  const bool grid = c.name == "grid";
  const bool halves = pauses_trials(c.name) && !replaces_trials(c.name);
  v.field("seed", c.seed, "The same seed and results give the same points.",
          whole(0, kLargestWhole));
  v.field("startupTrials", c.startup_trials,
          "Trials, at Sobol points, before the model is used; default 10, for gp and ehvi by the "
          "space.",
          whole(0, kMaxStartupTrials).only_if(model, "name: tpe, bohb, gp or ehvi"));
  v.field("candidates", c.candidates,
          "Candidates looked at for each suggestion; default 24, for gp and ehvi 1000.",
          whole(1, kMaxCandidates).only_if(model, "name: tpe, bohb, gp or ehvi"));
  v.field("points", c.points, "Points along a Double without a step; default 10.",
          whole(kMinGridPoints, kMaxGridPoints).only_if(grid, "name: grid"));
  v.field("shuffle", c.shuffle, "Visit the grid in a seeded random order.",
          FieldRules{}.only_if(grid, "name: grid"));
  const bool has_population = c.name == "cmaes" || c.name == "nsga2";
  v.field("populationSize", c.population_size,
          "Trials of a generation; default for cmaes: by the number of parameters, for nsga2: 20.",
          whole(kMinPopulation, kMaxPopulation).only_if(has_population, "name: cmaes or nsga2"));
  v.field("reductionFactor", c.reduction_factor, "One in so many goes on from each rung.",
          above(1, 1000).only_if(halves, "name: hyperband, bohb or dehb"));
  visit_population_fields(v, c);
  v.field("costAware", c.cost_aware,
          "Count what is gained against the GPU-seconds that a trial is predicted to cost.",
          FieldRules{}.only_if(counts_cost(c.name), "name: auto, gp or ehvi"));
}

template <class Visitor, Like<EarlyStopping> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name,
          "The rule that ends poor trials; none: all run to their end, whatever auto would do.",
          one_of(early_stopping_names()).needed());
  const bool asha = c.name == "asha";
  const bool waits = !asha && c.name != kNoEarlyStopping;
  const bool curve = c.name == "curve";
  const bool compares = c.name == "median" || c.name == "percentile" || curve;
  v.field("reductionFactor", c.reduction_factor, "One in so many goes on from each rung.",
          above(1, 1000).only_if(asha, "name: asha"));
  v.field("promote", c.promote, "Trials pause at rungs; the best go on from their checkpoints.",
          FieldRules{}.only_if(asha, "name: asha"));
  v.field("minTrials", c.min_trials, "Others to compare with before anything is stopped.",
          whole(1, 1'000'000).only_if(compares, "name: median, percentile or curve"));
  v.field("startStep", c.start_step, "No trial is stopped before this step.",
          whole(1, 1'000'000'000).only_if(waits, "a name other than asha and none"));
  v.field("percentile", c.percentile, "The best so many percent go on.",
          above(0, 100).only_if(c.name == "percentile", "name: percentile"));
  v.field("patience", c.patience, "Reports without an improvement that are borne.",
          whole(1, 1'000'000).only_if(c.name == "patience", "name: patience"));
  v.field("threshold", c.threshold, "A trial stops whose objective is worse than this.",
          number(-kLargestBound, kLargestBound)
              .needed()
              .only_if(c.name == "threshold", "name: threshold"));
  v.field("probability", c.probability, "A trial stops that is less likely to end among the best.",
          above(0, 1).only_if(curve, "name: curve"));
  v.field("top", c.top, "How many results are the best.",
          whole(1, 1'000'000).only_if(curve, "name: curve"));
}

template <class Visitor, Like<Budget> T>
void visit_fields(Visitor& v, T& c) {
  v.field("trials", c.trials, "Trials created at most; of pbt and pb2: the population.",
          whole(1, 1'000'000));
  v.field("parallelism", c.parallelism, "Trials at once.", whole(1, 1000));
  v.field("failures", c.failures, "Failed trials that are still accepted.", whole(0, 1'000'000));
  v.field("wallTime", c.wall_time, "Time in which at least one trial was running.",
          duration_above_zero());
  v.field("gpuHours", c.gpu_hours, "GPU-hours spent at most.", above(0, 1e9));
}

template <class Visitor, Like<MetricsFilter> T>
void visit_fields(Visitor& v, T& c) {
  v.field("regex", c.regex, "A regular expression with groups for name and value.",
          text(1, 1024).needed());
  v.field("step", c.step,
          "A regular expression whose group is the step of its line and of those after it, such as "
          "epoch (\\d+).",
          text(0, 1024));
  v.field("firstStep", c.first_step,
          "What the program calls its first step; a Study counts from 1.", whole(0, 1));
}

template <class Visitor, Like<Checkpoints> T>
void visit_fields(Visitor& v, T& c) {
  v.field("claim", c.claim, "A PersistentVolumeClaim that is there; what is in it stays.",
          text(0, 253));
  v.field("size", c.size,
          "Size of a PersistentVolumeClaim that is made for the Study and removed with it.",
          above(0, 1e18).as(Form::kQuantity));
  v.field("storageClass", c.storage_class, "Of the claim that is made; left out: the default one.",
          text(0, 253));
  v.field("accessMode", c.access_mode, "Of the claim that is made.", one_of(access_mode_names()));
  v.field("keep", c.keep, "Newest checkpoints kept for each trial.", whole(1, 100));
}

template <class Visitor, Like<Gpu> T>
void visit_fields(Visitor& v, T& c) {
  v.field("count", c.count, "Whole GPUs for each worker.", whole(1, 64));
  v.field("fraction", c.fraction, "Share of one GPU; needs a cluster that shares GPUs.",
          above(0, 1).with([](FieldRules& r) { r.below_max = true; }));
  v.field(
      "memory", c.memory,
      "Memory of one GPU; needs a cluster that shares GPUs. auto: what the trainer says that each "
      "training needs.",
      above(0, 1e15).as(Form::kQuantity).or_chosen());
  v.field("model", c.model, "Words of the name of the card, such as H100; left out: any card.",
          text(0, kLongestName).as(Form::kLabelValue));
}

template <class Visitor, Like<Workers> T>
void visit_fields(Visitor& v, T& c) {
  v.field("min", c.min, "Fewest data-parallel workers.", whole(1, 1024));
  v.field("max", c.max, "Most data-parallel workers.", whole(1, 1024));
  v.field("sizing", c.sizing,
          "Auto: trials grow while GPUs are free and shrink while a trial waits. Manual: only "
          "fettle scale changes them. Left out: Auto with the built-in trainer, else Manual.");
}

template <class Visitor, Like<Toleration> T>
void visit_fields(Visitor& v, T& c) {
  v.field("key", c.key, "Of the taint; left out, with operator Exists: of every taint.",
          label_key());
  v.field("operator", c.relation, "Equal: the taint has this value. Exists: any value.");
  v.field("value", c.value, "Of the taint, with operator Equal.", label_value());
  v.field("effect", c.effect, "Of the taint; left out: each of them.");
  v.field("tolerationSeconds", c.seconds,
          "With effect NoExecute: seconds to stay on a node that gets the taint; left out: for "
          "ever.",
          whole(0, kLargestWhole));
}

inline FieldRules object() { return FieldRules{}.as(Form::kObject); }
inline FieldRules objects(std::size_t most) { return list(0, most).as(Form::kObject); }

// Of the container of the built-in trainer; named as there, but for its securityContext.
template <class Visitor, Like<TrainerPod> T>
void visit_container_fields(Visitor& v, T& c) {
  v.field("imagePullPolicy", c.image_pull_policy, "When the image is pulled.",
          one_of(image_pull_policy_names()));
  v.field("containerSecurityContext", c.container_security_context,
          "The securityContext of the container, laid over the one of the restricted standard.",
          object());
  v.field("resources", c.resources,
          "Requests and limits of CPU, memory and the like; GPUs are asked for by trial.gpu.",
          object());
  v.field("volumeMounts", c.volume_mounts, "Where volumes appear; not below /fettle.",
          objects(kMostMounts));
  v.field("env", c.env, "Variables of the environment; those that Fettle sets cannot be changed.",
          objects(kMostPodVariables));
  v.field("envFrom", c.env_from, "ConfigMaps and Secrets whose entries become variables.",
          objects(kMostEnvSources));
}

// Named as in a pod, into which they are copied.
template <class Visitor, Like<TrainerPod> T>
void visit_fields(Visitor& v, T& c) {
  const FieldRules values = list(0, kMostSelectors).as(Form::kLabelValue).by_label();
  v.field(
      "labels", c.labels, "Labels of the pods; those of fettle.dev/ are Fettle's.",
      values.of_text(kLongestLabelName).with([](FieldRules& r) { r.max_size = kMostPodLabels; }));
  v.field("annotations", c.annotations,
          "Annotations of the pods; those of fettle.dev/ are Fettle's.",
          list(0, kMostPodLabels).of_text(kLongestAnnotation).by_label());
  v.field("nodeSelector", c.node_selector, "Labels that a node must have.",
          values.of_text(kLongestLabelName));
  v.field("tolerations", c.tolerations, "Taints of nodes that do not keep the pods away.",
          list(0, kMostTolerations));
  v.field("affinity", c.affinity, "Nodes and pods to be near, or away from.", object());
  v.field("topologySpreadConstraints", c.topology_spread, "How the pods spread over the cluster.",
          objects(kMostSpreads));
  v.field("schedulerName", c.scheduler, "The scheduler, where it is not the cluster's default.",
          dns_subdomain());
  v.field("runtimeClassName", c.runtime_class, "The RuntimeClass, such as nvidia.",
          dns_subdomain());
  v.field("priorityClassName", c.priority_class, "The PriorityClass.", dns_subdomain());
  v.field("serviceAccountName", c.service_account,
          "The ServiceAccount, which must be allowed to report; left out: fettle-trainer.",
          dns_subdomain());
  v.field("securityContext", c.security_context,
          "The securityContext of the pods, laid over the one of the restricted standard.",
          object());
  v.field("volumes", c.volumes,
          "Volumes, such as a claim with data; names of fettle- are Fettle's.",
          objects(kMostVolumes));
  visit_container_fields(v, c);
}

template <class Visitor, Like<TrialTemplate> T>
void visit_fields(Visitor& v, T& c) {
  v.field("metrics", c.metrics, "For images that print no JSON lines.");
  v.field("timeout", c.timeout, "Time one run may take.", duration_above_zero());
  v.field("heartbeat", c.heartbeat, "Time without a report after which a run counts as hung.",
          duration_above_zero());
  v.field("retries", c.retries, "Further runs after failures of the trial's own.", whole(0, 100));
  v.field("gracePeriod", c.grace_period, "Time between SIGTERM and SIGKILL.", grace_period());
  v.field(
      "checkpoints", c.checkpoints,
      "Where checkpoints go, and how many are kept. With a template: its image goes on from them.");
  v.field("gpu", c.gpu, "GPUs of each worker; left out: CPU.");
  v.field("workers", c.workers, "Data-parallel workers.");
  v.field("queue", c.queue,
          "On a cluster: the queue that admits the trials: a LocalQueue of Kueue, or with gang "
          "volcano or kai a queue of that scheduler.",
          text(1, kLongestLabelName).as(Form::kDnsSubdomain));
  v.field("queuePriorityClass", c.queue_priority, "The WorkloadPriorityClass in Kueue's queue.",
          text(1, kLongestLabelName).as(Form::kDnsSubdomain));
  v.field("gang", c.gang,
          "On a cluster: what gives all workers of a trial a node at once. auto: Kueue where there "
          "is a queue, else Fettle itself, one trial after the other; none: nothing; native, "
          "coscheduling, volcano, kai: a PodGroup of Kubernetes or of that scheduler.",
          one_of(gang_names()));
  v.field("execution", c.execution,
          "Job: one a trial. Pool: warm workers that run many trials; in this version the same as "
          "Job.");
  v.field("passEnvironment", c.pass_environment,
          "Names of variables, such as HF_TOKEN, that a local run passes on from its own "
          "environment; on a cluster use env or envFrom of the template.",
          list(0, kMostPassedVariables).with([](FieldRules& r) {
            r.form = Form::kVariableName;
            r.min_text = 1;
            r.max_text = kLongestVariable;
          }));
  v.field("pod", c.pod,
          "What pods of the built-in trainer have besides; a template says so itself.");
  v.field("trainer", c.trainer, "The built-in trainer.");
  v.field("template", c.pod_template, "Any pod template: your own image or command.",
          FieldRules{}.as(Form::kObject));
}

template <class Visitor, Like<WarmStart> T>
void visit_fields(Visitor& v, T& c) {
  v.field("studies", c.studies, "Earlier Studies whose results are learnt from.",
          list(0, 5).with([](FieldRules& r) {
            r.form = Form::kDnsLabel;
            r.min_text = 1;
            r.max_text = kLongestStudyName;
          }));
  v.field("map", c.map, "Names of parameters here, and what the earlier Studies call them.",
          list(0, kMostParameters).of_text(kLongestName));
  v.field("points", c.points, "Points to try first; parameters that one leaves out are drawn.",
          list(0, kMostFirstPoints).as(Form::kObject));
}

template <class Visitor, Like<StudySpec> T>
void visit_fields(Visitor& v, T& c) {
  v.field("objectives", c.objectives, "What to measure; the first one decides.",
          list(1, kMostObjectives).needed());
  v.field("parameters", c.parameters, "What to vary.", list(1, kMostParameters).needed());
  v.field("constraints", c.constraints, "Trials outside are infeasible.",
          list(0, kMostConstraints));
  v.field("resource", c.resource, "What a step counts, and how many a trial takes.");
  v.field("algorithm", c.algorithm, "What chooses the points.");
  v.field("earlyStopping", c.early_stopping,
          "What ends poor trials early; left out: with algorithm auto, what it decides.");
  v.field("budget", c.budget, "What to spend.");
  v.field("trial", c.trial, "How a trial runs.", FieldRules{}.needed());
  v.field("warmStart", c.warm_start, "Studies to learn from.");
  v.field("suspend", c.suspend, "Stop all trials gently, and go on later.");
  v.field("ttlAfterFinished", c.ttl_after_finished,
          "Time after its end at which a cluster deletes the Study and its trials.",
          number(0, kLongestDuration).as(Form::kDuration));
}

template <class Visitor, Like<StatusCondition> T>
void visit_fields(Visitor& v, T& c) {
  v.field("type", c.type, "What the condition is about.", text(1, 316).needed());
  v.field("status", c.status, "Whether it holds.", FieldRules{}.as(Form::kConditionStatus));
  v.field("reason", c.reason, "For machines.", message_text(256));
  v.field("message", c.message, "For people.", message_text(kLongestMessage));
  v.field("lastTransitionTime", c.since_ms, "When status last changed.", timestamp());
}

template <class Visitor, Like<TrialCounts> T>
void visit_fields(Visitor& v, T& c) {
  const FieldRules count = whole(0, kLargestWhole);
  v.field("created", c.created, "Trials created.", count);
  v.field("pending", c.pending, "Trials that wait.", count);
  v.field("running", c.running, "Trials that run.", count);
  v.field("completed", c.completed, "Trials that reached their last step.", count);
  v.field("stopped", c.stopped, "Trials ended early by a decision.", count);
  v.field("failed", c.failed, "Trials that ended without a result.", count);
  v.field("infeasible", c.infeasible, "Completed, but non-finite or outside a constraint.", count);
}

template <class Visitor, Like<BestTrial> T>
void visit_fields(Visitor& v, T& c) {
  v.field("trial", c.trial, "Its name.", text(0, kLongestName));
  v.field("step", c.step, "The step of its objectives.", whole(0, kLargestWhole));
  v.field("objectives", c.objectives, "In the order of spec.objectives.", list(0, kMostObjectives));
  v.field("parameters", c.parameters, "Its parameters.", FieldRules{}.as(Form::kObject));
}

template <class Visitor, Like<PriorObservation> T>
void visit_fields(Visitor& v, T& c) {
  v.field("trial", c.trial, "Its name.", text(0, kLongestName));
  v.field("parameters", c.parameters, "Its place in this Study's space.",
          FieldRules{}.as(Form::kObject));
  v.field("values", c.values, "In the order of spec.objectives.", list(0, kMostObjectives));
}

template <class Visitor, Like<SearchPeriod> T>
void visit_fields(Visitor& v, T& c) {
  v.field("since", c.since, "The index of the first trial it chose.", whole(0, kLargestWhole));
  v.field("basis", c.basis, "The highest seq that was known.", whole(0, kLargestWhole));
  v.field("algorithm", c.algorithm, "In force: with algorithm auto what that stands for.",
          text(0, kLongestName));
  v.field("earlyStopping", c.early_stopping, "The rule that auto has added.",
          text(0, kLongestName));
  v.field("trials", c.trials, "The budget.trials that it rests on.", whole(0, kLargestWhole));
  v.field("parallelism", c.parallelism, "The budget.parallelism that it rests on.",
          whole(0, kLargestWhole));
  v.field("maxCost", c.max_cost, "With costAware: what all trials together may cost.",
          number(0, kLargestBound));
  v.field("reason", c.reason, "Why auto chose the algorithm.", message_text(512));
  v.field("steps", c.steps, "What auto decided about steps.", message_text(512));
  v.field("computedBy", c.computed_by, "Version, processor and mathematical library.",
          message_text(256));
}

template <class Visitor, Like<GpuChoice> T>
void visit_fields(Visitor& v, T& c) {
  v.field("profile", c.profile, "Its name.", message_text(kLongestName));
  v.field("sharing", c.sharing, "How cards are shared.", message_text(kLongestName));
  v.field("enforces", c.enforces, "What keeps a pod to its share.", message_text(kLongestName));
  v.field("gpus", c.gpus, "GPUs of each worker.", number(0, 1024));
  v.field("memory", c.memory, "Memory of a card that each worker has.",
          number(0, 1e15).as(Form::kQuantity));
  v.field("reason", c.reason, "Why this profile.", message_text(1024));
}

template <class Visitor, Like<StudyDisplay> T>
void visit_fields(Visitor& v, T& c) {
  v.field("state", c.state, "What goes on.", message_text(64));
  v.field("best", c.best, "Objective values of the best trial.", message_text(256));
  v.field("gpuHours", c.gpu_hours, "GPU-hours spent.", message_text(64));
  v.field("eta", c.eta, "Time that the rest will take.", message_text(64));
}

template <class Visitor, Like<StudyStatus> T>
void visit_fields(Visitor& v, T& c) {
  const FieldRules amount = number(0, kLargestBound);
  v.field("observedGeneration", c.observed_generation, "Of the spec last acted on.",
          whole(0, kLargestWhole));
  v.field("updateTime", c.updated_ms, "When this status was written.", timestamp());
  v.field("conditions", c.conditions, "Running, Suspended, Succeeded, Failed.", list(0, 16));
  v.field("trials", c.trials, "Counts of trials.");
  v.field("best", c.best, "The best trial, or the Pareto front as far as it fits into 64 KiB.",
          list(0, kMaxFront));
  v.field("priorObservations", c.prior_observations, "What earlier Studies had found.",
          list(0, kMaxPriorObservations));
  v.field("search", c.search, "What chose the trials, from which one on.",
          list(0, kMostSearchPeriods));
  v.field("hypervolume", c.hypervolume, "What the Pareto front covers, up to the references.",
          amount);
  v.field("algorithm", c.algorithm, "The sampler in use.", message_text(1024));
  v.field("gpu", c.gpu, "Where the GPUs of trials come from.");
  v.field("gpuHours", c.gpu_hours, "GPU-hours spent.", amount);
  v.field("activeSeconds", c.active_seconds, "Time in which a trial was running.", amount);
  v.field("startTime", c.started_ms, "When the first trial was created.", timestamp());
  v.field("completionTime", c.ended_ms, "When the Study ended.", timestamp());
  v.field("etaSeconds", c.eta_seconds, "Time that the rest will take.", amount);
  v.field("progress", c.progress, "Ended and planned trials.", message_text(64));
  v.field("display", c.display, "For tables.");
}

template <class Visitor, Like<Study> T>
void visit_fields(Visitor& v, T& c) {
  v.constant("apiVersion", kApiVersion);
  v.constant("kind", "Study");
  v.field("metadata", c.metadata, "The name of the Study.", FieldRules{}.needed());
  v.field("spec", c.spec, "What to vary, to measure and to spend.", FieldRules{}.needed());
  v.field("status", c.status, "What came of it.");
}

}  // namespace fettle::api
