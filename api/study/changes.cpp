#include "api/study/changes.h"

#include "api/fields/field_errors.h"
#include "api/study/study_json.h"

namespace fettle::api {
namespace {

std::string shown(const Json* value) { return value == nullptr ? "nothing" : describe(*value); }

class Comparison {
 public:
  // `why` follows the two values of a field that may not change.
  Comparison(bool (*may_change)(std::string_view), std::string_view why, FieldErrors& errors)
      : may_change_(may_change), why_(why), errors_(errors) {}

  // Descends into maps, and into lists of the same length; anything else is one field.
  void compare(const Json* before, const Json* after, const FieldPath& path) {
    const bool same = before != nullptr && after != nullptr && *before == *after;
    if (same || may_change_(path.str())) return;
    const bool both = before != nullptr && after != nullptr;
    if (both && before->is_object() && after->is_object()) {
      return compare_maps(*before, *after, path);
    }
    if (both && before->is_array() && after->is_array() &&
        before->as_array().size() == after->as_array().size()) {
      for (std::size_t i = 0; i < before->as_array().size(); ++i) {
        compare(&before->as_array()[i], &after->as_array()[i], path.item(i));
      }
      return;
    }
    errors_.add(path, "was " + shown(before) + ", now " + shown(after) + "; " + std::string(why_));
  }

 private:
  void compare_maps(const Json& before, const Json& after, const FieldPath& path) {
    for (const auto& [key, value] : before.as_object()) {
      compare(&value, after.find(key), path.member(key));
    }
    for (const auto& [key, value] : after.as_object()) {
      if (before.find(key) == nullptr) compare(nullptr, &value, path.member(key));
    }
  }

  bool (*may_change_)(std::string_view);
  std::string_view why_;
  FieldErrors& errors_;
};

}  // namespace

bool may_change(std::string_view path) {
  constexpr std::string_view kBudget = "spec.budget.";
  constexpr std::string_view kObjectives = "spec.objectives[";
  for (const std::string_view field :
       {"spec.suspend", "spec.ttlAfterFinished", "spec.budget", "spec.trial.timeout",
        "spec.trial.heartbeat", "spec.trial.retries", "spec.trial.gracePeriod",
        "spec.trial.passEnvironment", "spec.trial.execution", "spec.trial.slots",
        "spec.trial.queue", "spec.trial.queuePriorityClass"}) {
    if (path == field) return true;
  }
  if (path.substr(0, kBudget.size()) == kBudget) return true;
  return path.substr(0, kObjectives.size()) == kObjectives &&
         (path.ends_with(".goal") || path.ends_with(".reference"));
}

std::vector<FieldError> forbidden_changes(const StudySpec& before, const StudySpec& after) {
  std::vector<FieldError> found = forbidden_differences(
      write_study_spec(before), write_study_spec(after), may_change,
      "it may not change once there are trials: put it back, or give the Study another name");
  // may_change() allows another queue, but a Study can neither join nor leave queues ("" = none).
  if (before.trial.queue.empty() != after.trial.queue.empty()) {
    found.push_back({"spec.trial.queue", std::string(kQueueStays)});
  }
  return found;
}

bool trial_may_change(std::string_view path) {
  return path == "spec.untilStep" || path == "spec.workers" || path == "spec.gpuMemory" ||
         path == "spec.sizing" || path.starts_with("spec.sizing.") || path == "spec.stop" ||
         path == "spec.suspend" || path == "spec.search.rung" || path == "spec.search.promotions";
}

std::vector<FieldError> forbidden_differences(const Json& before, const Json& after,
                                              bool (*may_change)(std::string_view),
                                              std::string_view why) {
  FieldErrors errors;
  Comparison(may_change, why, errors).compare(&before, &after, FieldPath("spec"));
  return std::move(errors).take();
}

}  // namespace fettle::api
