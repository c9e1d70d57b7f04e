// Shared by the commands that talk to a cluster: the call, and the message where Fettle is not
// installed.
#include "cli/cluster/cluster.h"

namespace fettle::cli {

kube::ClientOptions client_options() {
  kube::ClientOptions options;
  options.field_manager = kManager;
  return options;
}

Error explain_missing_resource(Error error) {
  if (error.code != ErrorCode::kNotFound) return error;
  return {ErrorCode::kUnavailable,
          error.message + "; is Fettle installed there? `helm install fettle helm/fettle` does it"};
}

}  // namespace fettle::cli
