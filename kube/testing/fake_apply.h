// Server-side apply in FakeApiServer: a manager owns leaves (scalars, whole lists and empty
// objects), and applying again replaces exactly its own leaves by the new leaves, except that a
// leaf stays if another manager owns it too. Pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace fettle::kube {

// A leaf: the keys on the path to it.
using LeafPath = std::vector<std::string>;
using Leaves = std::set<LeafPath>;
using LeavesByManager = std::map<std::string, Leaves>;

// Returns the leaves of `object`, without its identity and fields that only the server sets.
Leaves leaves_of(const Json& object);

// Applies `object` to `target` as `manager` and records its new leaves.
void apply_leaves(Json& target, const Json& object, const std::string& manager,
                  LeavesByManager& owners);

}  // namespace fettle::kube
