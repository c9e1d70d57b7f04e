// Checks of the Study as a whole, and of how its trials run.
#include <algorithm>
#include <set>

#include "api/fields/nearest.h"
#include "api/fields/quantity.h"
#include "api/study/check.h"
#include "api/study/resolve.h"
#include "api/study/study_fields.h"

namespace fettle::api {
namespace {

void check_order(std::int64_t min, std::int64_t max, const FieldPath& path, FieldErrors& errors) {
  if (min <= max || errors.any_under(path)) return;
  errors.add(path.member("min"), "found " + std::to_string(min) +
                                     ", expected at most max, which is " + std::to_string(max));
}

void check_objectives(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < spec.objectives.size(); ++i) {
    const std::string& metric = spec.objectives[i].metric;
    const FieldPath item = path.item(i);
    if (metric == "step") {
      errors.add(item.member("metric"),
                 "found \"step\", which counts progress and is not a metric; name another metric");
    } else if (!metric.empty() && !seen.insert(metric).second) {  // "" has an error already
      errors.add(item.member("metric"),
                 "found " + describe(Json(metric)) + " again; expected a different metric each");
    }
  }
}

void check_constraints(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < spec.constraints.size(); ++i) {
    const Constraint& c = spec.constraints[i];
    const FieldPath item = path.item(i);
    if (errors.any_under(item)) continue;
    if (!c.min && !c.max) {
      errors.add(item, "has neither min nor max; expected at least one of them");
    } else if (c.min && c.max && *c.min > *c.max) {
      errors.add(item.member("min"), "found " + describe(*c.min) +
                                         ", expected at most max, which is " + describe(*c.max));
    }
  }
}

// Metrics of the 8-bit network, which the built-in trainer makes only if it is asked to.
void check_int8_metrics(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  if (!spec.trial.trainer || spec.trial.trainer->training.quantize) return;
  const auto quantizes = [](const Parameter& p) { return p.sets.starts_with("training.quantize"); };
  if (std::ranges::any_of(spec.parameters, quantizes)) return;
  const auto check = [&errors](const std::string& metric, const FieldPath& item) {
    if (!metric.starts_with("int8_")) return;
    errors.add(item.member("metric"),
               "found " + describe(Json(metric)) +
                   ", which the built-in trainer reports with training.quantize only; add "
                   "quantize: {} to trial.trainer.training, or name another metric");
  };
  for (std::size_t i = 0; i < spec.objectives.size(); ++i) {
    check(spec.objectives[i].metric, path.member("objectives").item(i));
  }
  for (std::size_t i = 0; i < spec.constraints.size(); ++i) {
    check(spec.constraints[i].metric, path.member("constraints").item(i));
  }
}

// Also checks the order of min and max in resource, on which it rests.
void check_early_stopping(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  const FieldPath resource = path.member("resource");
  check_order(spec.resource.min, spec.resource.max, resource, errors);
  if (!spec.early_stopping || errors.any_under(resource)) return;
  const FieldPath early = path.member("earlyStopping");
  // none stops no trial, so it fits everything.
  if (errors.any_under(early) || spec.early_stopping->name == StoppingKind::kNone) return;
  if (pauses_trials(spec.algorithm.name)) {
    errors.add(early, "found beside algorithm " + name_of(spec.algorithm.name) +
                          ", which itself decides which trials continue: remove one of the two");
  } else if (spec.resource.min >= spec.resource.max) {
    errors.add(early,
               "needs steps at which trials can stop; expected resource.max above resource.min, "
               "found max " +
                   std::to_string(spec.resource.max) + " and min " +
                   std::to_string(spec.resource.min));
  } else if (traits(spec.early_stopping->name).has_start &&
             spec.early_stopping->start_step >= spec.resource.max) {
    errors.add(early.member("startStep"), "found " +
                                              std::to_string(spec.early_stopping->start_step) +
                                              ", expected less than resource.max, which is " +
                                              std::to_string(spec.resource.max));
  }
}

void check_rungs(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  const bool read = !errors.any_under(path.member("resource"));
  // A schedule compares no trials: it replays legs.
  if (!read || !pauses_trials(spec.algorithm.name) || traits(spec.algorithm.name).replays) return;
  if (spec.resource.min < spec.resource.max) return;
  errors.add(path.member("algorithm").member("name"),
             "found " + name_of(spec.algorithm.name) +
                 ", which compares trials on the way: expected resource.max above resource.min, "
                 "found " +
                 std::to_string(spec.resource.max) + " and " + std::to_string(spec.resource.min));
}

void check_gpu(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors) {
  if (!trial.gpu || errors.any_under(path)) return;
  const Gpu& gpu = *trial.gpu;
  const int chosen = (gpu.count ? 1 : 0) + (gpu.fraction ? 1 : 0) + (gpu.memory ? 1 : 0);
  if (chosen != 1) {
    errors.add(path, "found " + std::to_string(chosen) +
                         " of count, fraction and memory, expected exactly one; leave gpu out for "
                         "trials on the CPU");
  } else if (!gpu.count && trial.workers.max > 1) {
    errors.add(path.member(gpu.fraction ? "fraction" : "memory"),
               "found " + (gpu.fraction ? describe(*gpu.fraction) : format_quantity(*gpu.memory)) +
                   " with up to " + std::to_string(trial.workers.max) +
                   " workers; two workers on one GPU can block each other forever; use count: 1, "
                   "or one worker");
  }
}

void check_auto_memory(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors) {
  if (!trial.gpu || trial.gpu->memory != kAutoAmount || trial.trainer || errors.any_under(path))
    return;
  errors.add(path,
             "found auto without the built-in trainer, which alone knows what a training needs; "
             "expected an amount such as 20Gi");
}

void check_queue(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors) {
  const FieldPath priority = path.member("queuePriorityClass");
  if (errors.any_under(path.member("queue")) || errors.any_under(path.member("gang"))) return;
  if (trial.gang == "kai" && trial.queue.empty()) {
    errors.add(
        path.member("queue"),
        "is missing; expected a queue of KAI beside gang kai, which places no pod without one");
  }
  if (trial.queue_priority.empty()) return;
  if (trial.queue.empty()) {
    errors.add(priority,
               "found without queue; expected queue beside it: it ranks the trials in that queue");
  } else if (gang_has_queue(trial.gang)) {
    errors.add(priority,
               "found with gang " + trial.gang +
                   ", whose queues do not support a WorkloadPriorityClass; use priorityClassName "
                   "of the pods");
  }
}

void check_execution(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors) {
  if (trial.execution == Execution::kWarm && trial.workers.max > 1) {
    errors.add(path.member("execution"),
               "found Warm, with up to " + std::to_string(trial.workers.max) +
                   " workers for a trial; expected auto or Process, or one worker");
  }
  if (trial.slots < 2) return;
  if (!trial.trainer && !trial.pod_template.is_null()) {
    errors.add(path.member("slots"),
               "is for the built-in trainer; your own program trains one trial at a time: remove "
               "it, and set budget.parallelism");
  } else if (!trains_warm(trial)) {
    errors.add(path.member("slots"),
               "needs execution Warm and one worker; a process of its own has one trial");
  }
}

void check_checkpoints(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors) {
  if (!trial.checkpoints || errors.any_under(path)) return;
  const Checkpoints& wanted = *trial.checkpoints;
  if (wanted.size && !wanted.claim.empty()) {
    errors.add(path.member("size"),
               "found beside claim; expected at most one of the two: claim is a volume of yours, "
               "which stays; size creates one, which is deleted with the Study");
  } else if (!wanted.size && !wanted.storage_class.empty()) {
    errors.add(path.member("storageClass"),
               "found without size; expected size beside it: a claim is made only then");
  }
}

void check_epochs(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  const auto& epochs = spec.trial.trainer->training.epochs;
  // Left out: resource.max (fill_in_defaults).
  if (!epochs || *epochs == spec.resource.max) return;
  errors.add(path, "found " + std::to_string(*epochs) +
                       ", expected the same as resource.max, which is " +
                       std::to_string(spec.resource.max) + "; leave epochs out");
}

// Checks the names of parameters in this Study; their names in other Studies are unknown.
void check_map(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  std::vector<std::string_view> names;
  for (const Parameter& p : spec.parameters) names.push_back(p.name);
  for (const auto& [here, there] : spec.warm_start->map) {
    if (std::ranges::find(names, here) != names.end()) continue;
    errors.add(path.member(here),
               "no parameter of this Study is called that; expected its name "
               "here, and as the value what the earlier Studies call it" +
                   did_you_mean(here, names));
  }
}

void check_warm_start(const Study& study, const FieldPath& warm_start, FieldErrors& errors) {
  if (!study.spec.warm_start) return;
  std::set<std::string_view> seen;
  const FieldPath path = warm_start.member("studies");
  const std::vector<std::string>& studies = study.spec.warm_start->studies;
  const WarmStart& warm = *study.spec.warm_start;
  const bool is_empty =
      studies.empty() && warm.points.empty() && warm.results.empty() && warm.known.empty();
  if (is_empty && !errors.any_under(warm_start)) {
    errors.add(warm_start,
               "has neither studies, results nor points; expected at least one of them: studies or "
               "a file of results to learn from, or points to try first");
  }
  if (traits(study.spec.algorithm.name).replays && !errors.any_under(warm_start)) {
    errors.add(warm_start,
               "found beside algorithm schedule, whose legs say what is trained: remove one of the "
               "two");
  }
  check_map(study.spec, warm_start.member("map"), errors);
  check_points(study.spec, warm_start.member("points"), errors);
  check_known(study.spec, warm_start.member("known"), errors);
  for (std::size_t i = 0; i < studies.size(); ++i) {
    if (studies[i].empty()) continue;  // has an error already
    if (studies[i] == study.metadata.name) {
      errors.add(path.item(i), "found this Study itself; expected the name of an earlier one");
    } else if (!seen.insert(studies[i]).second) {
      errors.add(path.item(i),
                 "found " + describe(Json(studies[i])) + " again; expected distinct names");
    }
  }
}

// A front has no single order, so no leaders; and if trials replace each other, a trial is more
// than its parameters.
void check_replicates(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  if (!spec.replicates || errors.any_under(path)) return;
  if (replaces_trials(spec.algorithm.name)) {
    errors.add(path, "found beside algorithm " + name_of(spec.algorithm.name) +
                         ", whose trials take over from each other, so that their parameters alone "
                         "do not repeat them: remove one of the two");
  } else if (spec.objectives.size() > 1) {
    errors.add(path, "found with " + std::to_string(spec.objectives.size()) +
                         " objectives, expected one: its value says which configurations lead; "
                         "remove replicates, or limit the other metrics by constraints");
  }
}

}  // namespace

void check_trial(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  const TrialTemplate& trial = spec.trial;
  check_order(trial.workers.min, trial.workers.max, path.member("workers"), errors);
  check_gpu(trial, path.member("gpu"), errors);
  check_checkpoints(trial, path.member("checkpoints"), errors);
  check_auto_memory(trial, path.member("gpu").member("memory"), errors);
  check_queue(trial, path, errors);
  check_execution(trial, path, errors);
  check_pod(trial, path.member("pod"), errors);
  const FieldPath trainer = path.member("trainer");
  const FieldPath pod = path.member("template");
  const bool has_template = trial.pod_template.is_object();
  if (has_template) check_pod_template(trial.pod_template, pod, errors);
  if (trial.trainer && has_template) {
    errors.add(pod,
               "found beside trainer; expected exactly one of the two: trainer is the "
               "built-in one, template your own image or command");
  } else if (!trial.trainer && !has_template && !errors.any_under(path)) {
    // An error under `path` may hide a template that could not be read.
    errors.add(path,
               "has neither trainer nor template; expected exactly one of them: trainer for "
               "the built-in one, template for your own image or command");
  }
  if (!trial.trainer) return;
  if (trial.metrics) {
    errors.add(path.member("metrics"),
               "is for templates; the built-in trainer reports its metrics itself: remove it");
  }
  if (spec.resource.unit != "epoch") {
    errors.add("spec.resource.unit", "found " + describe(Json(spec.resource.unit)) +
                                         ", expected epoch, which the built-in trainer counts");
  }
  const FieldPath training = trainer.member("training");
  const FieldPath epochs = training.member("epochs");
  if (!errors.any_under(epochs)) check_epochs(spec, epochs, errors);
}

void check_study(const Study& study, FieldErrors& errors) {
  if (study.metadata.name.size() > kLongestStudyName) {
    errors.add("metadata.name", "found " + std::to_string(study.metadata.name.size()) +
                                    " characters, expected at most " +
                                    std::to_string(kLongestStudyName) +
                                    ", since trials and jobs add to the name");
  }
  const StudySpec& spec = study.spec;
  const FieldPath path("spec");
  check_objectives(spec, path.member("objectives"), errors);
  const FieldPath parameters = path.member("parameters");
  check_parameters(spec, parameters, errors);
  check_constraints(spec, path.member("constraints"), errors);
  if (!errors.any_under(path.member("trial"))) check_int8_metrics(spec, path, errors);
  check_early_stopping(spec, path, errors);
  check_rungs(spec, path, errors);
  check_population(spec, path, errors);
  check_replicates(spec, path.member("replicates"), errors);
  // check_sets() runs before check_trial(), whose errors it would take for unreadable fields.
  check_sets(spec, parameters, errors);
  check_trial(spec, path.member("trial"), errors);
  check_warm_start(study, path.member("warmStart"), errors);
}

}  // namespace fettle::api
