// What an administrator wants in every trainer's pod: a part of a pod template, laid over the one
// that the operator makes. Pure functions; usable from any thread.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

// `patch` over `object`, as kubectl merges pods: maps are merged; lists of what has a name
// (containers, env, volumes; mounts by their path) are merged by it; other lists and all else are
// replaced; null takes a field away.
void patch_pod(Json& object, const Json& patch);

// kInvalid, in words: `patch` is no part of a pod template, or names containers that no trainer's
// pod has.
Status check_pod_patch(const Json& patch);

}  // namespace fettle::kubernetes
