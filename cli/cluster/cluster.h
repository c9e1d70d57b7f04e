// Cluster: the API server and the namespace in which the cluster side of the commands works.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/common/commands.h"
#include "kube/client/client.h"
#include "kube/client/http.h"

namespace fettle::cli {

inline constexpr const char* kManager = "fettle-cli";  // field manager of objects applied from here

struct Cluster {
  std::shared_ptr<kube::HttpTransport> transport;
  std::string ns;
  std::string program;  // name of this program in hints
  std::string kubectl;  // kubectl in hints, with the options for this cluster
};

// Finds the cluster by the kubeconfig, as kubectl does; sends nothing yet. kInvalid or kNotFound,
// with a remedy; kIo in builds without Kubernetes.
Result<Cluster> reach_cluster(const Target& place);

kube::ClientOptions client_options();

// Returns an error that says that Fettle is not installed, if the resource is missing altogether.
Error explain_missing_resource(Error error);

}  // namespace fettle::cli
