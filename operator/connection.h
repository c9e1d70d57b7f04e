// Connection: fettle-operator's transports to its API server.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/client/http.h"

namespace fettle::op {

struct Connection {
  std::string server;
  std::string ns;  // the pod's namespace, or the kubeconfig's
  std::unique_ptr<kube::HttpTransport> transport;
  std::unique_ptr<kube::HttpTransport> lease_transport;  // renewals wait for no other call
};

// Connects by the pod's service account, outside of a pod by kubectl's rules; a named kubeconfig
// ("" = none) takes precedence. Exec plugins are not run. Sends nothing.
Result<Connection> connect(const std::string& kubeconfig);

}  // namespace fettle::op
