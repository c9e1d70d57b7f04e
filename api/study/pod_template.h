// trial_container(): finds the container that is the trial, for checks, runtimes and logs alike.
// Pure functions; usable from any thread.
#pragma once

#include "base/json.h"

namespace fettle::api {

inline constexpr const char* kTrialContainer = "trainer";

// Returns the trial's container in `pod_template`, or in a pod: the one named kTrialContainer, else
// the first; nullptr if there are no containers.
const Json* trial_container(const Json& pod_template);
Json* trial_container(Json& pod_template);

}  // namespace fettle::api
