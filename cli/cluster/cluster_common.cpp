// Parts that all commands for a cluster share: the options of the client, and the message if Fettle
// is not installed.
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
