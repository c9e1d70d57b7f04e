// JSON merge patches (RFC 7396): objects are merged member by member, null removes a member, and
// everything else replaces. Pure functions.
#pragma once

#include "base/json.h"

namespace fettle {

// Applies `patch` to `target`.
void merge_patch(Json& target, const Json& patch);

// The patch that turns `from` into `to`; both are objects without null members.
Json make_merge_patch(const Json& from, const Json& to);

}  // namespace fettle
