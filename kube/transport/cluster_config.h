// ClusterConfig: address and credentials of an API server, from the kubeconfig, which kubectl reads
// for us, or, in a pod, from its service account. connect() makes the transport.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kube/client/http.h"
#include "kube/transport/tls.h"

namespace fettle::kube {

// A program that prints credentials (kubectl's exec plugins; exec_plugin.h).
struct ExecConfig {
  enum class Interactive { kNever, kIfAvailable, kAlways };
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to this process's
  std::string api_version;                                       // of its input and output
  std::string install_hint;                                      // shown if the command is missing
  Interactive interactive = Interactive::kIfAvailable;
  bool wants_cluster = false;  // its input includes the cluster
  bool operator==(const ExecConfig&) const = default;
};

struct ClusterConfig {
  std::string server;  // "https://10.0.0.1:6443", perhaps with a path
  std::string ns;      // the default namespace
  TlsConfig tls;
  std::string token;
  std::string token_file;  // wins over `token`, and is read again and again
  std::optional<ExecConfig> exec;
  bool operator==(const ClusterConfig&) const = default;
};

struct ConfigOptions {
  std::string kubeconfig;  // --kubeconfig; "" = as kubectl: $KUBECONFIG, then ~/.kube/config
  std::string context;     // --context; "" = the file's current-context
  bool allow_exec =
      false;  // run the program that the kubeconfig names: for people, not for servers
  std::string kubectl = "kubectl";
};

// Runs kubectl, which chooses the context by its own rules. Without any kubeconfig, uses
// in_cluster_config(). kInvalid and kNotFound, with file and remedy.
Result<ClusterConfig> load_cluster_config(const ConfigOptions& options);
// The same for a given environment; absent variables are nullptr.
using Environment = std::function<const char*(const char* name)>;
Result<ClusterConfig> load_cluster_config(const ConfigOptions& options,
                                          const Environment& environment);

// Reads what `kubectl config view --raw --minify --output=json` prints of `files`: one context with
// its cluster and user. A field that changes identity or server, and that Fettle does not support,
// is an error.
Result<ClusterConfig> read_kubectl_view(const Json& view, const std::vector<std::string>& files);

// Files that the kubelet puts into every pod. kNotFound outside of a pod.
inline constexpr const char* kServiceAccountDirectory =
    "/var/run/secrets/kubernetes.io/serviceaccount";
Result<ClusterConfig> in_cluster_config(const Environment& environment,
                                        const std::string& directory = kServiceAccountDirectory);

// OpenSSL reads the system's authorities for each new connection, even if the cluster's own replace
// them: 30 ms and a megabyte each. This empties them for the whole process (and its children),
// through the environment: for servers that use one cluster, at the start of main().
void forget_system_authorities();

// Checks certificates, keys and the address, but sends nothing yet. Destroy the transport after its
// calls and streams have returned, and before main() ends. `user_agent` is "fettle-operator/0.1.0".
Result<std::unique_ptr<HttpTransport>> connect(const ClusterConfig& config,
                                               const std::string& user_agent);

}  // namespace fettle::kube
