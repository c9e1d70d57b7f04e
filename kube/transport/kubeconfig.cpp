#include "kube/transport/kubeconfig.h"

#include <array>
#include <filesystem>
#include <utility>

#include "api/nearest.h"
#include "api/yaml/yaml_reader.h"
#include "kube/transport/base64.h"

namespace fettle::kube {
namespace {

constexpr std::string_view kExecVersions[] = {"client.authentication.k8s.io/v1",
                                              "client.authentication.k8s.io/v1beta1"};

// In the order of Json::Type.
std::string in_words(Json::Type type) {
  constexpr std::array<const char*, 6> kWords{"null",     "true or false", "a number",
                                              "a string", "a list",        "a map"};
  return kWords.at(static_cast<std::size_t>(type));
}

// Reads fields of one kubeconfig; missing and null fields leave the value unchanged.
class Reader {
 public:
  Reader(const api::YamlDocument& document, const std::string& file)
      : document_(document), file_(file) {}

  // "config:4:3: clusters[0].cluster.server: `message`"
  Error wrong(const std::string& path, const std::string& message) const {
    const api::LineColumn place = document_.find(path);
    return invalid(file_ + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
                   ": " + path + ": " + message);
  }
  std::string where(const std::string& path) const { return file_ + ": " + path; }

  // Returns the member, checked for its type; nullptr if it is missing or null.
  Result<const Json*> member(const Json& object, const std::string& path, const std::string& key,
                             Json::Type type) const {
    const Json* const found = object.find(key);
    if (found == nullptr || found->is_null()) return nullptr;
    if (found->type() == type) return found;
    return wrong(join(path, key),
                 "found " + in_words(found->type()) + ", expected " + in_words(type));
  }

  Status text(const Json& object, const std::string& path, const std::string& key,
              std::string& out) const {
    FETTLE_ASSIGN(const Json* const found, member(object, path, key, Json::Type::kString));
    if (found != nullptr) out = found->as_string();
    return success();
  }

  Status flag(const Json& object, const std::string& path, const std::string& key,
              bool& out) const {
    FETTLE_ASSIGN(const Json* const found, member(object, path, key, Json::Type::kBoolean));
    if (found != nullptr) out = found->as_boolean();
    return success();
  }

  // Reads a path, relative to the directory of the file.
  Status path(const Json& object, const std::string& at, const std::string& key,
              std::string& out) const {
    std::string found;
    FETTLE_TRY(text(object, at, key, found));
    if (!found.empty()) out = beside_file(found);
    return success();
  }

  // `key` is a path, `key`-data the content in base64.
  Status pem(const Json& object, const std::string& at, const std::string& key, Pem& out) const {
    FETTLE_TRY(path(object, at, key, out.file));
    std::string encoded;
    FETTLE_TRY(text(object, at, key + "-data", encoded));
    if (encoded.empty()) return success();
    std::optional<std::string> decoded = decode_base64(encoded);
    if (!decoded) return wrong(join(at, key + "-data"), "is not base64; copy it once more, whole");
    out.data = std::move(*decoded);
    return success();
  }

  std::string beside_file(const std::string& path) const {
    const std::filesystem::path directory = std::filesystem::path(file_).parent_path();
    return (directory / path).lexically_normal().string();
  }

  static std::string join(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }

 private:
  const api::YamlDocument& document_;
  const std::string& file_;
};

Result<KubeconfigCluster> read_cluster(const Reader& reader, const Json& body,
                                       const std::string& path) {
  KubeconfigCluster out;
  out.where = reader.where(path);
  FETTLE_TRY(reader.text(body, path, "server", out.server));
  FETTLE_TRY(reader.pem(body, path, "certificate-authority", out.ca));
  FETTLE_TRY(reader.text(body, path, "tls-server-name", out.tls_server_name));
  FETTLE_TRY(reader.text(body, path, "proxy-url", out.proxy_url));
  FETTLE_TRY(reader.flag(body, path, "insecure-skip-tls-verify", out.insecure));
  return out;
}

Result<KubeconfigContext> read_context(const Reader& reader, const Json& body,
                                       const std::string& path) {
  KubeconfigContext out;
  out.where = reader.where(path);
  FETTLE_TRY(reader.text(body, path, "cluster", out.cluster));
  FETTLE_TRY(reader.text(body, path, "user", out.user));
  FETTLE_TRY(reader.text(body, path, "namespace", out.ns));
  return out;
}

Status read_exec_lists(const Reader& reader, const Json& body, const std::string& path,
                       ExecConfig& out) {
  FETTLE_ASSIGN(const Json* const args, reader.member(body, path, "args", Json::Type::kArray));
  for (std::size_t i = 0; args != nullptr && i < args->as_array().size(); ++i) {
    const Json& argument = args->as_array()[i];
    if (!argument.is_string()) {
      return reader.wrong(path + ".args[" + std::to_string(i) + "]",
                          "found " + in_words(argument.type()) + ", expected a string");
    }
    out.arguments.push_back(argument.as_string());
  }
  FETTLE_ASSIGN(const Json* const env, reader.member(body, path, "env", Json::Type::kArray));
  for (std::size_t i = 0; env != nullptr && i < env->as_array().size(); ++i) {
    const std::string at = path + ".env[" + std::to_string(i) + "]";
    std::pair<std::string, std::string> variable;
    FETTLE_TRY(reader.text(env->as_array()[i], at, "name", variable.first));
    FETTLE_TRY(reader.text(env->as_array()[i], at, "value", variable.second));
    if (variable.first.empty() || variable.first.find('=') != std::string::npos) {
      return reader.wrong(at, "expected a name and a value");
    }
    out.environment.push_back(std::move(variable));
  }
  return success();
}

Result<ExecConfig> read_exec(const Reader& reader, const Json& body, const std::string& path) {
  ExecConfig out;
  FETTLE_TRY(reader.text(body, path, "command", out.command));
  if (out.command.empty()) return reader.wrong(path, "names no command");
  // A bare name is searched for in $PATH.
  if (out.command.find('/') != std::string::npos) out.command = reader.beside_file(out.command);
  FETTLE_TRY(reader.text(body, path, "apiVersion", out.api_version));
  if (out.api_version != kExecVersions[0] && out.api_version != kExecVersions[1]) {
    return reader.wrong(path + ".apiVersion", "found \"" + out.api_version + "\", expected " +
                                                  std::string(kExecVersions[0]));
  }
  FETTLE_TRY(reader.text(body, path, "installHint", out.install_hint));
  FETTLE_TRY(reader.flag(body, path, "provideClusterInfo", out.wants_cluster));
  std::string mode = "IfAvailable";
  FETTLE_TRY(reader.text(body, path, "interactiveMode", mode));
  if (mode == "Never") {
    out.interactive = ExecConfig::Interactive::kNever;
  } else if (mode == "Always") {
    out.interactive = ExecConfig::Interactive::kAlways;
  } else if (mode != "IfAvailable") {
    return reader.wrong(path + ".interactiveMode",
                        "found \"" + mode + "\", expected Never, IfAvailable or Always");
  }
  FETTLE_TRY(read_exec_lists(reader, body, path, out));
  return out;
}

Result<KubeconfigUser> read_user(const Reader& reader, const Json& body, const std::string& path) {
  KubeconfigUser out;
  out.where = reader.where(path);
  FETTLE_TRY(reader.pem(body, path, "client-certificate", out.certificate));
  FETTLE_TRY(reader.pem(body, path, "client-key", out.key));
  FETTLE_TRY(reader.text(body, path, "token", out.token));
  FETTLE_TRY(reader.path(body, path, "tokenFile", out.token_file));
  for (const char* const field :
       {"auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra"}) {
    const Json* const found = body.find(field);
    if (found != nullptr && !found->is_null()) out.unsupported = field;
  }
  FETTLE_ASSIGN(const Json* const exec, reader.member(body, path, "exec", Json::Type::kObject));
  if (exec != nullptr) {
    FETTLE_ASSIGN(out.exec, read_exec(reader, *exec, path + ".exec"));
  }
  return out;
}

// Reads a list of {name, `kind`: {...}} into a map.
template <class T, class Read>
Status read_named(const Reader& reader, const Json& root, const std::string& list,
                  const std::string& kind, const Read& read, std::map<std::string, T>& out) {
  FETTLE_ASSIGN(const Json* const entries, reader.member(root, "", list, Json::Type::kArray));
  for (std::size_t i = 0; entries != nullptr && i < entries->as_array().size(); ++i) {
    const Json& entry = entries->as_array()[i];
    const std::string path = list + "[" + std::to_string(i) + "]";
    std::string name;
    FETTLE_TRY(reader.text(entry, path, "name", name));
    FETTLE_ASSIGN(const Json* const body, reader.member(entry, path, kind, Json::Type::kObject));
    FETTLE_ASSIGN(T value,
                  read(reader, body == nullptr ? Json::object() : *body, path + "." + kind));
    if (!out.emplace(name, std::move(value)).second) {
      return reader.wrong(path + ".name", "found the name \"" + name + "\" a second time");
    }
  }
  return success();
}

// Returns the entry, or an error that lists the existing names.
template <class T>
Result<const T*> find_named(const std::map<std::string, T>& all, const std::string& name,
                            const std::string& what) {
  const auto found = all.find(name);
  if (found != all.end()) return &found->second;
  std::vector<std::string_view> names;
  for (const auto& [other, value] : all) names.push_back(other);
  return Error{ErrorCode::kNotFound,
               what + " \"" + name + "\" is not there" + api::did_you_mean(name, names)};
}

Status use_cluster(const KubeconfigCluster& cluster, ClusterConfig& out) {
  if (cluster.server.empty()) return invalid(cluster.where + ": names no server");
  if (!cluster.proxy_url.empty()) {
    return invalid(cluster.where + ".proxy-url: proxies are not supported; use an address that " +
                   "can be reached directly, for example through a tunnel");
  }
  if (cluster.insecure && !cluster.ca.empty()) {
    return invalid(cluster.where + ": found both certificate-authority and " +
                   "insecure-skip-tls-verify: true; remove one of them");
  }
  out.server = cluster.server;
  out.tls.ca = cluster.ca;
  out.tls.server_name = cluster.tls_server_name;
  out.tls.insecure = cluster.insecure;
  return success();
}

Status use_user(const KubeconfigUser& user, ClusterConfig& out) {
  if (!user.unsupported.empty()) {
    return invalid(user.where + "." + user.unsupported + ": is not supported; use " +
                   "client-certificate, token, tokenFile or exec");
  }
  if (user.certificate.empty() != user.key.empty()) {
    return invalid(user.where + ": found " +
                   (user.key.empty() ? "client-certificate without client-key"
                                     : "client-key without client-certificate"));
  }
  out.tls.certificate = user.certificate;
  out.tls.key = user.key;
  out.token = user.token;
  out.token_file = user.token_file;
  out.exec = user.exec;
  return success();
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& file) {
  if (text.size() > kMaxKubeconfigBytes) {
    return invalid(file + ": is larger than " + std::to_string(kMaxKubeconfigBytes) + " bytes");
  }
  const api::ReadYaml yaml = api::read_yaml(text);
  if (!yaml.errors.empty()) {
    const api::YamlError& error = yaml.errors.front();
    return invalid(file + ":" + std::to_string(error.place.line) + ":" +
                   std::to_string(error.place.column) + ": " + error.message);
  }
  Kubeconfig out;
  out.where = file;
  if (yaml.documents.empty()) return out;
  const api::YamlDocument& document = yaml.documents.front();
  const Reader reader(document, file);
  const Json& root = document.value();
  if (yaml.documents.size() > 1 || !root.is_object()) {
    return invalid(file + ": expected one YAML document, of kind Config");
  }
  std::string kind;
  FETTLE_TRY(reader.text(root, "", "kind", kind));
  if (!kind.empty() && kind != "Config") {
    return reader.wrong("kind", "found " + kind + ", expected Config; this is no kubeconfig");
  }
  FETTLE_TRY(reader.text(root, "", "current-context", out.current_context));
  FETTLE_TRY(read_named(reader, root, "clusters", "cluster", read_cluster, out.clusters));
  FETTLE_TRY(read_named(reader, root, "users", "user", read_user, out.users));
  FETTLE_TRY(read_named(reader, root, "contexts", "context", read_context, out.contexts));
  return out;
}

Kubeconfig merge(Kubeconfig first, Kubeconfig second) {
  first.where += ", " + second.where;
  if (first.current_context.empty()) first.current_context = std::move(second.current_context);
  first.clusters.merge(second.clusters);
  first.users.merge(second.users);
  first.contexts.merge(second.contexts);
  return first;
}

Result<ClusterConfig> choose_context(const Kubeconfig& config, const std::string& name) {
  const std::string& chosen = name.empty() ? config.current_context : name;
  if (chosen.empty()) {
    return invalid(config.where +
                   ": there is no current-context; choose one with `kubectl config "
                   "use-context NAME`");
  }
  FETTLE_ASSIGN(const KubeconfigContext* const context,
                find_named(config.contexts, chosen, config.where + ": the context"));
  FETTLE_ASSIGN(
      const KubeconfigCluster* const cluster,
      find_named(config.clusters, context->cluster, context->where + ".cluster: the cluster"));
  ClusterConfig out;
  out.ns = context->ns.empty() ? "default" : context->ns;
  FETTLE_TRY(use_cluster(*cluster, out));
  if (context->user.empty()) return out;
  FETTLE_ASSIGN(const KubeconfigUser* const user,
                find_named(config.users, context->user, context->where + ".user: the user"));
  FETTLE_TRY(use_user(*user, out));
  return out;
}

}  // namespace fettle::kube
