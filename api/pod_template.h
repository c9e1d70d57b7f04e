// Which container of a pod is the trial, for checks, runtimes and logs alike. Pure functions;
// usable from any thread.
#pragma once

#include "base/json.h"

namespace fettle::api {

inline constexpr const char* kTrialContainer = "trainer";

// The container of `pod_template`, or of a pod, that is the trial: the one named kTrialContainer,
// else the first. nullptr where there is none.
const Json* trial_container(const Json& pod_template);
Json* trial_container(Json& pod_template);

}  // namespace fettle::api
