// The built-in trainer's pod: the rules of Kubernetes across the fields of a toleration.
#include "api/check.h"

namespace fettle::api {
namespace {

void check_toleration(const Toleration& toleration, const FieldPath& path, FieldErrors& errors) {
  const bool exists = toleration.relation == TolerationOperator::kExists;
  if (toleration.key.empty() && !exists) {
    errors.add(path.member("key"),
               "is missing; expected the key of a taint, or operator: Exists, which without a key "
               "stands for every taint");
  }
  if (exists && !toleration.value.empty()) {
    errors.add(path.member("value"), "found " + describe(Json(toleration.value)) +
                                         " with operator Exists, which takes any value: remove "
                                         "one of the two");
  }
  if (toleration.seconds && toleration.effect != TaintEffect::kNoExecute) {
    errors.add(path.member("tolerationSeconds"),
               "only makes sense with effect: NoExecute; remove it");
  }
}

}  // namespace

void check_pod(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors) {
  if (!trial.pod) return;
  if (trial.pod_template.is_object()) {
    errors.add(path,
               "is for the built-in trainer; a template says in its own spec where it may run: "
               "remove pod");
  }
  const FieldPath list = path.member("tolerations");
  for (std::size_t i = 0; i < trial.pod->tolerations.size(); ++i) {
    const FieldPath item = list.item(i);
    if (!errors.any_under(item)) check_toleration(trial.pod->tolerations[i], item, errors);
  }
}

}  // namespace fettle::api
