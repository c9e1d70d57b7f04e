// What every runtime needs to know of a pod template. Pure functions; usable from any thread.
#pragma once

#include "base/json.h"

namespace fettle::runtime {

// The container of `pod_template` that is the trial: the one named `trainer`, else the first.
// nullptr where there is none.
const Json* trial_container(const Json& pod_template);
Json* trial_container(Json& pod_template);

}  // namespace fettle::runtime
