#include "api/study/pod_template.h"

namespace fettle::api {
namespace {

// One body for const and mutable templates.
template <class J>
J* find_trial_container(J& pod_template) {
  J* const spec = pod_template.find("spec");
  J* const containers = spec == nullptr ? nullptr : spec->find("containers");
  if (containers == nullptr || !containers->is_array() || containers->as_array().empty()) {
    return nullptr;
  }
  for (J& container : containers->as_array()) {
    const Json* const name = container.find("name");
    if (name != nullptr && *name == Json(kTrialContainer)) return &container;
  }
  return &containers->as_array().front();
}

}  // namespace

const Json* trial_container(const Json& pod_template) { return find_trial_container(pod_template); }
Json* trial_container(Json& pod_template) { return find_trial_container(pod_template); }

}  // namespace fettle::api
