// Server-side apply as FakeApiServer models it: a manager owns leaves (scalars, whole lists and
// empty objects), and applying again replaces exactly the leaves it owned by the new ones, except
// that a leaf that another manager owns too stays. Pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace fettle::kube {

// A leaf: the keys that lead to it.
using LeafPath = std::vector<std::string>;
using Leaves = std::set<LeafPath>;
using LeavesByManager = std::map<std::string, Leaves>;

// The leaves of `object`, but not what identifies it or what only the server sets.
Leaves leaves_of(const Json& object);

// Applies `object` to `target` as `manager` and notes what it owns now.
void apply_leaves(Json& target, const Json& object, const std::string& manager,
                  LeavesByManager& owners);

}  // namespace fettle::kube
