// Finds the row of a request in the table of calls (kube/client/calls.h). Pure functions.
#pragma once

#include <optional>
#include <string>

#include "kube/client/calls.h"
#include "kube/client/http.h"

namespace fettle::kube {

// A request in the terms of the table.
struct CallSeen {
  std::string verb;
  std::string resource;
};
// Absent for discovery, which is no call on a resource.
std::optional<CallSeen> call_of(const HttpRequest& request);

// Returns the row of the request, of this caller or of any; null if it has none.
const ApiCall* find_row(const HttpRequest& request, std::optional<Caller> caller = {});

// Returns "operator: create batch/jobs (start of a run)".
std::string describe(const ApiCall& call);

}  // namespace fettle::kube
