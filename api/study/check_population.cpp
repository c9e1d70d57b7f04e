// Checks of algorithms whose trials start from others: populations (pbt, pb2) and schedules.
#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/check.h"
#include "api/study/study.h"

namespace fettle::api {
namespace {

void check_interval(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  if (!spec.algorithm.interval || errors.any_under(path)) return;
  const std::int64_t interval = *spec.algorithm.interval;
  const auto complain = [&](const std::string& expected) {
    errors.add(path, "found " + std::to_string(interval) + ", expected " + expected);
  };
  const Resource& resource = spec.resource;
  if (interval >= resource.max) {
    complain("less than resource.max, which is " + std::to_string(resource.max) +
             ", so that trials are compared on the way");
  } else if (interval < resource.min) {
    complain("at least resource.min, which is " + std::to_string(resource.min));
  } else if (resource.max / interval > kMostIntervals) {
    complain("at least " + std::to_string((resource.max + kMostIntervals - 1) / kMostIntervals) +
             ": a trial has at most " + std::to_string(kMostIntervals) + " intervals");
  }
}

// Only the same network can take over weights.
void check_same_network(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
    const std::string& sets = spec.parameters[i].sets;
    // Dropout changes no shape: neither a gpt's, nor all layers' (model.dropout), nor one layer's
    // (rate).
    const bool same =
        !sets.starts_with("model.") || sets == "model.dropout" || sets.ends_with(".rate");
    if (same) continue;
    errors.add(path.item(i).member("sets"),
               "found " + sets + " under algorithm " + name_of(spec.algorithm.name) +
                   ", whose trials take over each other's weights and so need the same network; "
                   "fix it in trial.trainer, or use another algorithm");
  }
}

void check_legs(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  if (errors.any_under(path)) return;
  const std::vector<ScheduleLeg>& legs = spec.algorithm.legs;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < legs.size(); ++i) {
    const std::int64_t until = legs[i].until_step;
    const bool last = i + 1 == legs.size();
    const FieldPath item = path.item(i);
    const FieldPath field = item.member("untilStep");
    if (until <= before) {
      errors.add(field, "found " + std::to_string(until) +
                            ", expected more than that of the leg before, which is " +
                            std::to_string(before));
    } else if (last && until != spec.resource.max) {
      errors.add(field, "found " + std::to_string(until) + ", expected resource.max, which is " +
                            std::to_string(spec.resource.max) + ": it is the last leg");
    }
    before = until;
  }
}

}  // namespace

void check_population(const StudySpec& spec, const FieldPath& path, FieldErrors& errors) {
  const AlgorithmKind name = spec.algorithm.name;
  if (!replaces_trials(name) || errors.any_under(path.member("resource"))) return;
  const FieldPath algorithm = path.member("algorithm");
  check_same_network(spec, path.member("parameters"), errors);
  if (traits(name).replays) return check_legs(spec, algorithm.member("legs"), errors);
  check_interval(spec, algorithm.member("interval"), errors);
  const FieldPath budget = path.member("budget");
  if (errors.any_under(budget) || spec.budget.trials >= kLeastMembers) return;
  errors.add(budget.member("trials"),
             "found " + std::to_string(spec.budget.trials) + ", expected at least " +
                 std::to_string(kLeastMembers) + " under algorithm " + name_of(name) +
                 ": it is the population, of which the best replace the worst");
}

}  // namespace fettle::api
