// Immutability: rules that keep the fields of an existing object unchanged, except fields that may
// change. Pure; usable from any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace fettle::crds {

// Adds the rules to `schema`, an object at `path` ("spec"). Calls `may_change` for every field
// ("spec.budget", "spec.objectives[0].goal"). A list with some changeable fields has its entries
// matched by their keys; another rule must forbid to add or remove entries.
void add_immutability(Json& schema, const std::string& path,
                      const std::function<bool(std::string_view)>& may_change,
                      std::string_view message);

}  // namespace fettle::crds
