// Kubeconfig: the file in which kubectl keeps clusters, users and contexts (client-go's
// clientcmd/api/v1), read by kubectl's rules. Unused fields are skipped; an unsupported field that
// changes identity or server is an error when its context is used.
// Pure functions; usable from any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/transport/cluster_config.h"

namespace fettle::kube {

inline constexpr std::size_t kMaxKubeconfigBytes = 4 << 20;

struct KubeconfigCluster {
  std::string where;  // "~/.kube/config: clusters[0].cluster", for messages
  std::string server;
  Pem ca;
  std::string tls_server_name;
  std::string proxy_url;
  bool insecure = false;
};

struct KubeconfigUser {
  std::string where;
  Pem certificate;
  Pem key;
  std::string token;
  std::string token_file;
  std::optional<ExecConfig> exec;
  std::string unsupported;  // a field that is set, but that Fettle does not support
};

struct KubeconfigContext {
  std::string where;
  std::string cluster;
  std::string user;
  std::string ns;
};

struct Kubeconfig {
  std::string where;  // the file or files
  std::string current_context;
  std::map<std::string, KubeconfigCluster> clusters;
  std::map<std::string, KubeconfigUser> users;
  std::map<std::string, KubeconfigContext> contexts;
};

// Messages name the file `file`; relative paths inside are relative to its directory. Errors state
// file, line and column, the value found and the value expected.
Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& file);

// `first` wins for names in both: kubectl's rule for several files in $KUBECONFIG.
Kubeconfig merge(Kubeconfig first, Kubeconfig second);

// Resolves a context (name "" = current-context).
Result<ClusterConfig> choose_context(const Kubeconfig& config, const std::string& name);

}  // namespace fettle::kube
