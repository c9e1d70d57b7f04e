// Connection: the way from fettle-operator to its API server.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/http.h"

namespace fettle::op {

struct Connection {
  std::string server;
  std::string ns;  // the namespace we run in, or the kubeconfig's
  std::unique_ptr<kube::HttpTransport> transport;
  std::unique_ptr<kube::HttpTransport> lease_transport;  // so that renewals wait for nothing else
};

// With the service account of the pod, or outside of one by kubectl's rules; a kubeconfig that is
// named ("" = none) comes first. Programs that a kubeconfig names are not run. Sends nothing yet.
Result<Connection> connect(const std::string& kubeconfig);

}  // namespace fettle::op
