// The patch that an administrator configures for every trainer's pod: a partial pod template,
// merged into the operator's. Pure functions; usable from any thread.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

// Merges `patch` into `object` as a strategic merge patch: maps are merged; lists with a merge key
// (the name in containers, env, volumes; the path of mounts) are merged by it; other lists and
// values are replaced; null removes a field.
void patch_pod(Json& object, const Json& patch);

// kInvalid: `patch` is not a partial pod template, or names a container other than the trainer's.
Status check_pod_patch(const Json& patch);

}  // namespace fettle::kubernetes
