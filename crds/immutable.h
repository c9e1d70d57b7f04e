// Rules that keep fields as they are once the object exists, for all of a schema but the fields
// that may change. Pure; usable from any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace fettle::crds {

// Adds the rules to `schema`, an object at `path` ("spec"). `may_change` is asked for every field
// ("spec.budget", "spec.objectives[0].goal"). Of a list of which only some fields may change, its
// entries are matched by their keys; that none comes or goes is for a rule of its own.
void add_immutability(Json& schema, const std::string& path,
                      const std::function<bool(std::string_view)>& may_change,
                      std::string_view message);

}  // namespace fettle::crds
