// Checks of `sets`: it names a field of the built-in trainer that accepts every value.
#include <algorithm>

#include "api/fields/field_setter.h"
#include "api/study/check.h"
#include "api/study/parameter_env.h"
#include "api/study/resolve.h"
#include "api/trainer/check_trainer.h"
#include "api/trainer/trainer_fields.h"

namespace fettle::api {
namespace {

// Returns values that represent all: if a field accepts them, every value meets its bounds, its
// type and a demand for odd numbers.
std::vector<Json> telling_values(const Parameter& p) {
  switch (p.type) {
    case ParameterType::kBoolean:
      return {Json(false), Json(true)};
    case ParameterType::kCategorical:
      return p.values;
    case ParameterType::kInteger:
    case ParameterType::kDouble:
      break;
  }
  // Lies between whole numbers unless there is a step: the golden section of a range with whole
  // ends is never whole.
  const double between = p.min + (p.max - p.min) * 0.3819660112501051;
  const bool whole = p.type == ParameterType::kInteger;
  const double second = p.step ? p.min + *p.step : whole ? p.min + 1 : between;
  std::vector<Json> values{Json(p.min)};
  if (second < p.max) values.emplace_back(second);
  values.emplace_back(p.max);
  return values;
}

// Tells whether two parameters depend on a third one in ways that exclude each other.
class Activity {
 public:
  explicit Activity(const std::vector<Parameter>& all) : all_(all) {}

  bool exclusive(const Parameter& a, const Parameter& b) const {
    for (const Parameter* x = &a; x != nullptr; x = parent_of(*x)) {
      for (const Parameter* y = &b; y != nullptr; y = parent_of(*y)) {
        if (x->when && y->when && disjoint(*x->when, *y->when)) return true;
      }
    }
    return false;
  }

 private:
  // Searches only earlier parameters, so that walks end even in an invalid document.
  const Parameter* parent_of(const Parameter& p) const {
    if (!p.when) return nullptr;
    for (const Parameter& candidate : all_) {
      if (&candidate == &p) return nullptr;
      if (candidate.name == p.when->parameter) return &candidate;
    }
    return nullptr;
  }

  static bool disjoint(const Condition& a, const Condition& b) {
    return a.parameter == b.parameter && std::ranges::none_of(a.in, [&](const Json& value) {
             return std::ranges::find(b.in, value) != b.in.end();
           });
  }

  const std::vector<Parameter>& all_;
};

bool is_condition_of_another(const std::vector<Parameter>& all, const std::string& name) {
  return std::ranges::any_of(
      all, [&](const Parameter& p) { return p.when && p.when->parameter == name; });
}

// Returns the setter's message for the first value that the field refuses; "" if it accepts all.
std::string refusal(const TrainerConfig& config, const Parameter& p) {
  for (const Json& value : telling_values(p)) {
    TrainerConfig copy = config;
    FieldErrors refused;
    const FieldPath root;
    set_value(SetContext{p.sets, value, root, FieldRules{}, refused}, copy);
    if (refused.empty()) continue;
    return to_string(std::move(refused).take());
  }
  return {};
}

// Checks the field that parameter `index` sets. Requires spec.trial.trainer.
void check_one(const StudySpec& spec, std::size_t index, const FieldPath& path,
               FieldErrors& errors) {
  const Parameter& p = spec.parameters[index];
  if (p.sets == "training.epochs") {
    errors.add(path,
               "training.epochs follows resource.max and cannot be varied; vary what a step "
               "does, or let earlyStopping choose how far trials go");
    return;
  }
  if (std::string refused = refusal(*spec.trial.trainer, p); !refused.empty()) {
    errors.add(path, std::move(refused));
    return;
  }
  const Activity activity(spec.parameters);
  for (std::size_t i = 0; i < index; ++i) {
    const Parameter& other = spec.parameters[i];
    // Earlier parameters only, so that a pair has one error.
    if (other.sets != p.sets || activity.exclusive(other, p)) continue;
    errors.add(path, "found " + p.sets + ", which parameter " + other.name +
                         " sets already; give both a `when` that excludes the other, or remove "
                         "one");
    return;
  }
}

// Whether the field at `path` is hardest to fit with the others at its largest value
// (FieldRules::largest_is_hardest). Lives as long as one struct is visited.
class HardestEnd {
 public:
  explicit HardestEnd(std::string_view path) : head_(split_path(path)) {}

  template <class T>
  void field(std::string_view name, T& member, std::string_view /*description*/,
             const FieldRules& rules = {}) {
    if (name != head_.name) return;
    if constexpr (HasFields<T>) {
      HardestEnd inner(head_.rest);
      visit_fields(inner, member);
      is_largest_ = inner.is_largest();
    } else {
      is_largest_ = rules.largest_is_hardest;
    }
  }
  void constant(std::string_view /*name*/, std::string_view /*text*/) {}
  void ignored(std::string_view /*name*/) {}
  bool is_largest() const { return is_largest_; }

 private:
  PathHead head_;
  bool is_largest_ = false;
};

// Returns the value of `p` that is hardest to fit with the other fields; the first value if they
// are not numbers. Requires that the field accepts each value by itself.
Json hardest_value(const Parameter& p, TrainerConfig& config) {
  const std::vector<Json> values = telling_values(p);
  const auto less = [](const Json& a, const Json& b) {
    return a.is_number() && b.is_number() && a.as_double() < b.as_double();
  };
  HardestEnd end(p.sets);
  visit_fields(end, config);
  return end.is_largest() ? *std::ranges::max_element(values, less)
                          : *std::ranges::min_element(values, less);
}

// Returns the configuration with the hardest value of each parameter that every trial has. If the
// rest of it is valid with these, it is valid with all values.
TrainerConfig hardest_config(const StudySpec& spec) {
  TrainerConfig config = *spec.trial.trainer;
  for (const Parameter& p : spec.parameters) {
    if (p.sets.empty() || p.when) continue;
    // Each value fits the Study's own configuration. If an earlier parameter's value makes the
    // field inapplicable (only_if), the field keeps its value, and check_trainer judges the result.
    FieldErrors refused;
    const FieldPath root;
    set_value(SetContext{p.sets, hardest_value(p, config), root, FieldRules{}, refused}, config);
  }
  return config;
}

// Checks the configuration as a trial may see it; the Study's own if the parameters are wrong.
void check_sample(const StudySpec& spec, bool parameters_wrong, const FieldPath& trainer,
                  FieldErrors& errors) {
  TrainerConfig sample = parameters_wrong ? *spec.trial.trainer : hardest_config(spec);
  if (!sample.training.epochs) sample.training.epochs = spec.resource.max;
  check_trainer(sample, trainer, errors);
  if (sample.training.batch_per_worker && spec.trial.workers.min < spec.trial.workers.max) {
    const FieldPath training = trainer.member("training");
    errors.add(training.member("batchPerWorker"),
               "makes the batch depend on the number of workers, so workers.min and workers.max "
               "must be equal, found " +
                   std::to_string(spec.trial.workers.min) + " and " +
                   std::to_string(spec.trial.workers.max) + "; or use globalBatch");
  }
  const std::int64_t most = spec.trial.workers.max * whole_gpus(spec.trial);
  if (most > 1 && mixes_samples(sample) && !sample.training.norm_group) {
    const std::string taker = has_batch_norm(sample.model)
                                  ? "a batchNorm layer takes its statistics"
                                  : "quantize.method qat takes the ranges of its inputs";
    errors.add(trainer.member("training").member("normGroup"),
               "is missing; " + taker + " over a worker's samples, which with up to " +
                   std::to_string(most) + (most > spec.trial.workers.max ? " GPUs" : " workers") +
                   " are not always the same; set the number of samples that it takes them "
                   "over, for example 32");
  }
}

void check_without_trainer(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
    const Parameter& p = spec.parameters[i];
    if (p.sets.empty()) continue;
    const FieldPath item = path.item(i);
    errors.add(item.member("sets"),
               "needs trial.trainer, whose fields it names; a template reads the value as $(" +
                   parameter_env_name(p.name) + ")");
  }
}

}  // namespace

void check_sets(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  const FieldPath root("spec");
  const FieldPath trial = root.member("trial");
  const FieldPath trainer = trial.member("trainer");
  if (!spec.trial.trainer) {
    if (!errors.any_under(trial)) check_without_trainer(spec, path, errors);
    return;
  }
  const bool layers_known = !errors.any_under(trainer.member("model"));
  for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
    const Parameter& p = spec.parameters[i];
    const FieldPath item = path.item(i);
    // `sets` is checked even if the bounds or the condition are wrong: telling_values() needs only
    // the type and the values.
    if (errors.any_under(item.member("type")) || errors.any_under(item.member("values"))) continue;
    if (errors.any_under(item.member("sets"))) continue;
    if (!p.sets.empty()) {
      // A path into layers that could not be read cannot be judged.
      const bool in_layers = p.sets.rfind("model.layers", 0) == 0;
      if (layers_known || !in_layers) check_one(spec, i, item.member("sets"), errors);
    } else if (!is_condition_of_another(spec.parameters, p.name)) {  // a condition needs no field
      errors.add(item.member("sets"),
                 "is missing; expected the field of trial.trainer that gets the value, such as "
                 "training.learningRate; without it the parameter has no effect");
    }
  }
  if (errors.any_under(trainer)) return;
  check_sample(spec, /*parameters_wrong=*/errors.any_under(path), trainer, errors);
}

}  // namespace fettle::api
