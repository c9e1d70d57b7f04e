// Which row of the table of calls (kube/calls.h) a request belongs to. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "kube/calls.h"
#include "kube/http.h"

namespace fettle::kube {

// The request in the words of the table.
struct CallSeen {
  std::string verb;
  std::string resource;
};
// Absent: discovery, which is no call on a resource.
std::optional<CallSeen> call_of(const HttpRequest& request);

// The row of the request, of this caller or of any; null: it has none.
const ApiCall* find_row(const HttpRequest& request, std::optional<Caller> caller = {});

// "operator: create batch/jobs (start of a run)".
std::string describe(const ApiCall& call);

}  // namespace fettle::kube
