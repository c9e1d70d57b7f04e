#include "kube/transport/exec_plugin.h"

#include <unistd.h>

#include <utility>

#include "api/fields/timestamp.h"
#include "base/file.h"
#include "base/json.h"
#include "base/program.h"
#include "kube/objects/json_path.h"
#include "kube/transport/base64.h"

namespace fettle::kube {
namespace {

constexpr std::size_t kMaxCaBytes = 1 << 20;

// The plugin inherits standard error, on which it speaks to a person.
Result<std::string> run(const ExecConfig& exec, const std::string& info, bool interactive,
                        std::chrono::milliseconds limit) {
  ProgramCall call;
  call.command = {exec.command};
  call.command.insert(call.command.end(), exec.arguments.begin(), exec.arguments.end());
  call.environment = exec.environment;
  call.environment.emplace_back("KUBERNETES_EXEC_INFO", info);
  call.inherits_input = interactive;
  call.limit = limit;
  Result<ProgramEnd> end = run_program(call);
  if (!end.ok()) {
    const bool absent = end.error().code == ErrorCode::kNotFound && !exec.install_hint.empty();
    return Error{end.error().code, end.error().message + (absent ? "\n" + exec.install_hint : "")};
  }
  if (const std::string why = end->failure(); !why.empty()) return invalid(why);
  return std::move(end->output);
}

Result<CachedToken::Fetched> fetch(const ClusterConfig& config, std::chrono::milliseconds limit) {
  const ExecConfig& exec = *config.exec;
  const bool terminal = ::isatty(STDIN_FILENO) == 1;
  if (exec.interactive == ExecConfig::Interactive::kAlways && !terminal) {
    return invalid("the credential plugin " + exec.command +
                   " must be run at a terminal (interactiveMode: Always)");
  }
  const bool interactive = terminal && exec.interactive != ExecConfig::Interactive::kNever;
  FETTLE_ASSIGN(const std::string info, exec_info(config, interactive));
  const std::string where = "the credential plugin " + exec.command;
  Result<std::string> output = run(exec, info, interactive, limit);
  if (!output.ok()) return Error(output.error()).in(where);
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  Result<CachedToken::Fetched> read = read_exec_credential(*output, exec.api_version, now.count());
  if (!read.ok()) return Error(read.error()).in(where);
  return read;
}

}  // namespace

Result<std::string> exec_info(const ClusterConfig& config, bool interactive) {
  Json spec = Json::object({{"interactive", interactive}});
  if (config.exec->wants_cluster) {
    Json cluster = Json::object({{"server", config.server}});
    std::string ca = config.tls.ca.data;
    if (ca.empty() && !config.tls.ca.empty()) {
      FETTLE_ASSIGN(ca, read_file(config.tls.ca.file, kMaxCaBytes));
    }
    if (!ca.empty()) cluster.set("certificate-authority-data", encode_base64(ca));
    if (!config.tls.server_name.empty()) cluster.set("tls-server-name", config.tls.server_name);
    if (config.tls.insecure) cluster.set("insecure-skip-tls-verify", true);
    spec.set("cluster", std::move(cluster));
  }
  return Json::object({{"kind", "ExecCredential"},
                       {"apiVersion", config.exec->api_version},
                       {"spec", std::move(spec)}})
      .dump();
}

Result<CachedToken::Fetched> read_exec_credential(std::string_view output,
                                                  std::string_view api_version,
                                                  std::int64_t now_ms) {
  // The output may be a secret: messages do not show it.
  const Result<Json> json = parse_json(output);
  if (!json.ok()) return invalid("did not print an ExecCredential as JSON");
  if (text_at(*json, {"kind"}) != "ExecCredential")
    return invalid("did not print an ExecCredential");
  if (text_at(*json, {"apiVersion"}) != api_version) {
    return invalid("answered with apiVersion \"" + text_at(*json, {"apiVersion"}) +
                   "\", expected " + std::string(api_version));
  }
  const Json* const status = json->find("status");
  if (status == nullptr || !status->is_object()) return invalid("printed no status");
  CachedToken::Fetched out;
  out.credential = {text_at(*status, {"token"}), text_at(*status, {"clientCertificateData"}),
                    text_at(*status, {"clientKeyData"})};
  if (out.credential.certificate.empty() != out.credential.key.empty()) {
    return invalid("printed only one of clientCertificateData and clientKeyData");
  }
  if (out.credential.token.empty() && out.credential.certificate.empty()) {
    return invalid("printed neither a token nor a client certificate");
  }
  if (!out.credential.token.empty()) FETTLE_TRY(check_token(out.credential.token, "status.token"));
  const std::string expires = text_at(*status, {"expirationTimestamp"});
  if (expires.empty()) return out;
  const std::optional<std::int64_t> expires_ms = api::parse_timestamp(expires);
  if (!expires_ms) {
    return invalid("printed the expirationTimestamp \"" + expires.substr(0, 40) +
                   "\", expected the form 2026-01-31T12:00:00Z");
  }
  // Below 0 if it has expired: the next current() fetches again.
  out.valid_for = std::chrono::seconds((*expires_ms - now_ms) / 1000);
  return out;
}

std::unique_ptr<TokenSource> exec_credentials(const ClusterConfig& config,
                                              std::chrono::milliseconds limit) {
  return std::make_unique<CachedToken>([config, limit] { return fetch(config, limit); });
}

}  // namespace fettle::kube
