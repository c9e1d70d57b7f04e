// Cluster: the API server and the namespace that the cluster side of the commands works in.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/common/commands.h"
#include "kube/client.h"
#include "kube/http.h"

namespace fettle::cli {

inline constexpr const char* kManager = "fettle-cli";  // field manager of what is applied from here

struct Cluster {
  std::shared_ptr<kube::HttpTransport> transport;
  std::string ns;
  std::string program;  // how hints call this program
  std::string kubectl;  // how they call kubectl, with the options for this cluster
};

// From the kubeconfig, as kubectl finds it. Nothing is sent yet. kInvalid or kNotFound, with the
// way out; kIo in builds without Kubernetes.
Result<Cluster> reach_cluster(const Target& place);

kube::ClientOptions client_options();

// A resource that is not there at all means that Fettle is not installed; says so.
Error explain_missing_resource(Error error);

}  // namespace fettle::cli
