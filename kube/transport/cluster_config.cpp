#include "kube/transport/cluster_config.h"

#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "kube/transport/cpprest_wire.h"
#include "kube/transport/exec_plugin.h"
#include "kube/transport/kubeconfig.h"
#include "kube/transport/transport.h"

namespace fettle::kube {
namespace {

constexpr std::size_t kMaxNamespaceBytes = 1024;

std::string variable(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value == nullptr ? "" : value;
}

struct Paths {
  std::vector<std::string> files;
  bool must_exist = false;  // otherwise missing files are skipped
};

// $KUBECONFIG lists files as $PATH lists directories.
Paths kubeconfig_paths(const ConfigOptions& options, const Environment& environment) {
  if (!options.kubeconfig.empty()) return {{options.kubeconfig}, /*must_exist=*/true};
  Paths out;
  std::string list = variable(environment, "KUBECONFIG");
  while (!list.empty()) {
    const std::string file = list.substr(0, list.find(':'));
    list.erase(0, file.size() + 1);
    if (!file.empty()) out.files.push_back(file);
  }
  if (!out.files.empty()) return out;
  const std::string home = variable(environment, "HOME");
  if (!home.empty()) out.files.push_back(home + "/.kube/config");
  return out;
}

// Absent if none of the files exists.
Result<std::optional<Kubeconfig>> read_kubeconfigs(const Paths& paths) {
  std::optional<Kubeconfig> out;
  for (const std::string& file : paths.files) {
    const Result<std::string> text = read_file(file, kMaxKubeconfigBytes);
    if (!text.ok() && text.error().code == ErrorCode::kNotFound && !paths.must_exist) continue;
    if (!text.ok()) return text.error();
    FETTLE_ASSIGN(Kubeconfig read, parse_kubeconfig(*text, file));
    out = out ? merge(std::move(*out), std::move(read)) : std::move(read);
  }
  return out;
}

std::string in_words(const std::vector<std::string>& files) {
  std::string out;
  for (const std::string& file : files) out += (out.empty() ? "" : ", ") + file;
  return out;
}

Result<std::unique_ptr<TokenSource>> token_source(const ClusterConfig& config) {
  if (config.exec) return exec_credentials(config);
  if (!config.token_file.empty()) {
    std::unique_ptr<TokenSource> source = file_token(config.token_file);
    FETTLE_TRY(source->current());  // to show an error at the start
    return source;
  }
  if (!config.token.empty()) FETTLE_TRY(check_token(config.token, "the kubeconfig"));
  return std::unique_ptr<TokenSource>(std::make_unique<StaticToken>(config.token));
}

}  // namespace

Result<ClusterConfig> in_cluster_config(const Environment& environment,
                                        const std::string& directory) {
  const std::string host = variable(environment, "KUBERNETES_SERVICE_HOST");
  const std::string port = variable(environment, "KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return not_found("not in a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set");
  }
  ClusterConfig out;
  // An IPv6 address does not work as a host (cpprest_wire.cpp); this name means the same.
  const bool is_ipv6 = host.find(':') != std::string::npos;
  out.server = "https://" + (is_ipv6 ? "kubernetes.default.svc" : host) + ":" + port;
  out.tls.ca.file = directory + "/ca.crt";
  out.token_file = directory + "/token";
  const Result<std::string> ns = read_file(directory + "/namespace", kMaxNamespaceBytes);
  if (!ns.ok()) {
    return Error{ns.error().code, ns.error().message +
                                      "; does the pod have a service account token "
                                      "(automountServiceAccountToken, or a projected volume)?"};
  }
  out.ns = ns->substr(0, ns->find_first_of(" \r\n"));
  return out;
}

Result<ClusterConfig> load_cluster_config(const ConfigOptions& options,
                                          const Environment& environment) {
  const Paths paths = kubeconfig_paths(options, environment);
  FETTLE_ASSIGN(const std::optional<Kubeconfig> kubeconfig, read_kubeconfigs(paths));
  if (!kubeconfig) {
    Result<ClusterConfig> inside = in_cluster_config(environment);
    // By the text, because a pod with a missing token is kNotFound, too, and its error says so.
    if (inside.ok() || inside.error().message.rfind("not in a cluster", 0) != 0) return inside;
    return not_found("no cluster is known: there is no kubeconfig (" + in_words(paths.files) +
                     ") and this is no pod; name one with --kubeconfig FILE");
  }
  FETTLE_ASSIGN(ClusterConfig config, choose_context(*kubeconfig, options.context));
  if (config.exec && !options.allow_exec) {
    return invalid(kubeconfig->where + ": the user's credentials come from the program " +
                   config.exec->command +
                   " (exec), which is run for people only; use a token, tokenFile or client "
                   "certificate here");
  }
  return config;
}

Result<ClusterConfig> load_cluster_config(const ConfigOptions& options) {
  return load_cluster_config(options, [](const char* name) { return std::getenv(name); });
}

void forget_system_authorities() {
  ::setenv("SSL_CERT_FILE", "/dev/null", 1);
  ::setenv("SSL_CERT_DIR", "/dev/null", 1);
}

Result<std::unique_ptr<HttpTransport>> connect(const ClusterConfig& config,
                                               const std::string& user_agent) {
  FETTLE_ASSIGN(std::shared_ptr<Tls> tls, Tls::make(config.tls));
  FETTLE_ASSIGN(std::unique_ptr<Wire> wire,
                make_cpprest_wire(config.server, user_agent, std::move(tls)));
  FETTLE_ASSIGN(std::unique_ptr<TokenSource> tokens, token_source(config));
  return std::unique_ptr<HttpTransport>(
      std::make_unique<Transport>(config.server, std::move(wire), std::move(tokens)));
}

}  // namespace fettle::kube
