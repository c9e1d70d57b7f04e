// JSON merge patch (RFC 7396). A pure function; usable from any thread.
#pragma once

#include "base/json.h"

namespace fettle::kube {

// Members of `patch` replace those of `target`, objects member by member; null takes one away.
void merge_patch(Json& target, const Json& patch);

}  // namespace fettle::kube
