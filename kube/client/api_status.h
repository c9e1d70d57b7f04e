// ApiStatus: parses refusals of the API server, as Status objects or, if a proxy or load balancer
// answered instead, as any body. Pure functions; usable from any thread.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "kube/client/http.h"

namespace fettle::kube {

// A Status object (kind: Status): of a failed request, or within a watch.
struct ApiStatus {
  int code = 0;
  std::string reason;   // AlreadyExists, Conflict, Expired ...; "" if none is given
  std::string message;  // with the causes that it does not mention
  // The requested resourceVersion is older than the history, or newer than the server: list again.
  bool list_again = false;
  bool terminating = false;  // refused because the namespace is being deleted
};

// Absent if it is not a Status.
std::optional<ApiStatus> read_status(const Json& object);
std::optional<ApiStatus> read_status(const HttpResponse& response);

// Converts an unsuccessful answer to an Error (codes: client.h) whose message starts with `what`:
// "create Job team/digits-0-r0: exceeded quota: ...".
Error read_error(const HttpResponse& response, const std::string& what);

// Describes a body that is not JSON, for messages: "HTML (HTTP 502): Bad gateway".
std::string describe_body(const HttpResponse& response);

}  // namespace fettle::kube
