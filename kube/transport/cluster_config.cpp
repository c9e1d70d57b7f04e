#include "kube/transport/cluster_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/program.h"
#include "kube/objects/json_path.h"
#include "kube/transport/base64.h"
#include "kube/transport/cpprest_wire.h"
#include "kube/transport/exec_plugin.h"
#include "kube/transport/transport.h"

namespace fettle::kube {
namespace {

constexpr std::size_t kMaxNamespaceBytes = 1024;
constexpr std::string_view kExecVersions[] = {"client.authentication.k8s.io/v1",
                                              "client.authentication.k8s.io/v1beta1"};

std::string variable(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value == nullptr ? "" : value;
}

// The files of the kubeconfig by kubectl's rules, absent ones left out. $KUBECONFIG lists files as
// $PATH lists directories.
std::vector<std::string> kubeconfig_files(const ConfigOptions& options,
                                          const Environment& environment) {
  std::vector<std::string> out;
  if (std::filesystem::exists(options.kubeconfig)) out.push_back(options.kubeconfig);  // not ""
  if (!options.kubeconfig.empty()) return out;
  std::string list = variable(environment, "KUBECONFIG");
  if (list.empty()) list = variable(environment, "HOME") + "/.kube/config";
  while (!list.empty()) {
    const std::string file = list.substr(0, list.find(':'));
    list.erase(0, file.size() + 1);
    if (!file.empty() && std::filesystem::exists(file)) out.push_back(file);
  }
  return out;
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : separator) + part;
  return out;
}

// Returns the chosen context with its cluster and user, as kubectl prints it. Not flattened: files
// of certificates and tokens may change while this process runs.
Result<Json> ask_kubectl(const ConfigOptions& options, const std::vector<std::string>& files) {
  ProgramCall call;
  call.command = {options.kubectl, "config", "view", "--raw", "--minify", "--output=json"};
  if (!options.kubeconfig.empty()) call.command.push_back("--kubeconfig=" + options.kubeconfig);
  if (!options.context.empty()) call.command.push_back("--context=" + options.context);
  call.environment = {{"KUBECONFIG", joined(files, ":")}};
  call.keeps_errors = true;  // for failure()
  const Result<ProgramEnd> end = run_program(call);
  if (!end.ok() && end.error().code == ErrorCode::kNotFound) {
    return not_found("there is no kubectl on PATH, which reads the kubeconfig (" +
                     joined(files, ", ") +
                     "): install it, or run in a pod, where the service account is enough");
  }
  if (!end.ok()) return Error(end.error()).in(options.kubectl + " config view");
  if (const std::string why = end->failure(); !why.empty()) {
    return invalid("kubectl cannot choose a cluster from the kubeconfig (" + joined(files, ", ") +
                   "): " + why + "; `kubectl config get-contexts` lists what there is");
  }
  Result<Json> view = parse_json(end->output);
  if (!view.ok()) return Error(view.error()).in(options.kubectl + " config view");
  return view;
}

// Paths are relative to the file that names them, which kubectl does not say: it is the first one
// beside which they exist.
std::string beside(const std::vector<std::string>& files, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  std::vector<std::string> all;
  for (const std::string& file : files) {
    const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
    all.push_back((folder / path).lexically_normal().string());
    if (std::filesystem::exists(all.back())) return all.back();
  }
  return all.empty() ? path : all.front();  // it exists nowhere; reading it fails with this name
}

// `key` is a path, `key`-data the content in base64. Absent fields leave the Pem empty.
Result<Pem> read_pem(const Json& body, const std::string& key,
                     const std::vector<std::string>& files) {
  Pem out;
  out.file = beside(files, text_at(body, {key}));
  std::optional<std::string> decoded = decode_base64(text_at(body, {key + "-data"}));
  if (!decoded) return invalid(key + "-data is not base64; copy it once more, whole");
  out.data = std::move(*decoded);
  return out;
}

Status read_cluster(const Json& cluster, const std::vector<std::string>& files,
                    ClusterConfig& out) {
  out.server = text_at(cluster, {"server"});
  FETTLE_ASSIGN(out.tls.ca, read_pem(cluster, "certificate-authority", files));
  out.tls.server_name = text_at(cluster, {"tls-server-name"});
  out.tls.insecure = boolean_at(cluster, {"insecure-skip-tls-verify"});
  if (out.server.empty()) return invalid("the context's cluster names no server");
  if (!text_at(cluster, {"proxy-url"}).empty()) {
    return invalid(
        "the cluster's proxy-url: proxies are not supported; use an address that can be reached "
        "directly, for example through a tunnel");
  }
  if (out.tls.insecure && !out.tls.ca.empty()) {
    return invalid(
        "the cluster has both certificate-authority and insecure-skip-tls-verify: true; remove one "
        "of them");
  }
  return success();
}

Result<ExecConfig> read_exec(const Json& exec, const std::vector<std::string>& files) {
  ExecConfig out;
  out.command = text_at(exec, {"command"});
  if (out.command.empty()) return invalid("the user's exec names no command");
  // A bare name is searched for in $PATH.
  if (out.command.find('/') != std::string::npos) out.command = beside(files, out.command);
  out.api_version = text_at(exec, {"apiVersion"});
  if (std::ranges::find(kExecVersions, out.api_version) == std::end(kExecVersions)) {
    return invalid("the user's exec.apiVersion: found \"" + out.api_version + "\", expected " +
                   std::string(kExecVersions[0]));
  }
  out.install_hint = text_at(exec, {"installHint"});
  out.wants_cluster = boolean_at(exec, {"provideClusterInfo"});
  const std::string mode = text_at(exec, {"interactiveMode"});
  if (mode == "Never") out.interactive = ExecConfig::Interactive::kNever;
  if (mode == "Always") out.interactive = ExecConfig::Interactive::kAlways;
  for (const Json& argument : array_at(exec, {"args"})) {
    out.arguments.push_back(text_at(argument, {}));  // the value itself
  }
  for (const Json& entry : array_at(exec, {"env"})) {
    out.environment.emplace_back(text_at(entry, {"name"}), text_at(entry, {"value"}));
  }
  return out;
}

Status read_user(const Json& user, const std::vector<std::string>& files, ClusterConfig& out) {
  for (const char* const field :
       {"auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.find(field) == nullptr) continue;
    return invalid(std::string("the user's ") + field +
                   " is not supported; use client-certificate, token, tokenFile or exec");
  }
  FETTLE_ASSIGN(out.tls.certificate, read_pem(user, "client-certificate", files));
  FETTLE_ASSIGN(out.tls.key, read_pem(user, "client-key", files));
  if (out.tls.certificate.empty() != out.tls.key.empty()) {
    return invalid(out.tls.key.empty() ? "the user has client-certificate without client-key"
                                       : "the user has client-key without client-certificate");
  }
  out.token = text_at(user, {"token"});
  out.token_file = beside(files, text_at(user, {"tokenFile"}));
  if (const Json* const exec = user.find("exec"); exec != nullptr && exec->is_object()) {
    FETTLE_ASSIGN(out.exec, read_exec(*exec, files));
  }
  return success();
}

// The `kind` of the only entry in `list`; empty without one.
Json only(const Json& view, std::string_view list, std::string_view kind) {
  const Json::Array& entries = array_at(view, {list});
  const Json* const found = entries.empty() ? nullptr : entries[0].find(kind);
  return found == nullptr ? Json::object() : *found;
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

Result<ClusterConfig> read_kubectl_view(const Json& view, const std::vector<std::string>& files) {
  ClusterConfig out;
  out.ns = text_at(only(view, "contexts", "context"), {"namespace"});
  if (out.ns.empty()) out.ns = "default";
  FETTLE_TRY(read_cluster(only(view, "clusters", "cluster"), files, out));
  FETTLE_TRY(read_user(only(view, "users", "user"), files, out));
  return out;
}

Result<ClusterConfig> load_cluster_config(const ConfigOptions& options,
                                          const Environment& environment) {
  const std::vector<std::string> files = kubeconfig_files(options, environment);
  if (files.empty() && !options.kubeconfig.empty()) {
    return not_found("there is no kubeconfig " + options.kubeconfig);
  }
  if (files.empty()) {
    Result<ClusterConfig> inside = in_cluster_config(environment);
    // By the text, because a pod with a missing token is kNotFound, too, and its error says so.
    if (inside.ok() || inside.error().message.rfind("not in a cluster", 0) != 0) return inside;
    return not_found(
        "no cluster is known: there is no kubeconfig ($KUBECONFIG, else ~/.kube/config) and this "
        "is no pod; name one with --kubeconfig FILE");
  }
  const std::string where = joined(files, ", ");
  FETTLE_ASSIGN(const Json view, ask_kubectl(options, files));
  Result<ClusterConfig> config = read_kubectl_view(view, files);
  if (!config.ok()) return Error(config.error()).in(where);
  if (config->exec && !options.allow_exec) {
    return invalid(where + ": the user's credentials come from the program " +
                   config->exec->command +
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
