#include "kube/transport/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <thread>
#include <utility>

#include "api/quantity.h"
#include "api/timestamp.h"
#include "base/file.h"
#include "base/json.h"
#include "kube/transport/base64.h"

extern char** environ;

namespace fettle::kube {
namespace {

constexpr std::size_t kMaxOutput = 1 << 20;
constexpr std::size_t kMaxCaBytes = 1 << 20;
constexpr std::chrono::milliseconds kExitPause{10};  // between two checks of whether it has exited

// A child process and the end of the pipe for its standard output.
struct Child {
  pid_t pid = -1;
  int output = -1;
};

std::vector<std::string> environment_of(const ExecConfig& exec, const std::string& info) {
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable) out.emplace_back(*variable);
  for (const auto& [name, value] : exec.environment) out.push_back(name + "=" + value);
  out.push_back("KUBERNETES_EXEC_INFO=" + info);
  // The last of equal names counts, but programs take the first: only the last one stays.
  std::map<std::string, std::string> by_name;
  for (const std::string& entry : out) by_name[entry.substr(0, entry.find('='))] = entry;
  out.clear();
  for (auto& [name, entry] : by_name) out.push_back(std::move(entry));
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (std::string& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// The child inherits standard error, on which a plugin speaks to a person.
Result<Child> start(const ExecConfig& exec, const std::string& info, bool interactive) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return io_error("cannot make a pipe: " + system_message(errno));
  std::vector<std::string> arguments{exec.command};
  arguments.insert(arguments.end(), exec.arguments.begin(), exec.arguments.end());
  std::vector<std::string> environment = environment_of(exec, info);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (!interactive) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  Child child;
  const int error = ::posix_spawnp(&child.pid, exec.command.c_str(), &actions, nullptr,
                                   pointers(arguments).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return Error{error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 "cannot be run: " + system_message(error) +
                     (exec.install_hint.empty() ? "" : "\n" + exec.install_hint)};
  }
  child.output = ends[0];
  return child;
}

// The most time for a plugin, and when it ends.
struct Limit {
  explicit Limit(std::chrono::milliseconds most)
      : time(most), end(std::chrono::steady_clock::now() + most) {}
  Error passed() const {
    return invalid("did not end within " +
                   api::format_duration(static_cast<double>(time.count()) / 1000));
  }
  std::chrono::milliseconds time;
  TimePoint end;
};

// Reads until the plugin closes its output.
Status read_output(int fd, const Limit& limit, std::string& out) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        limit.end - std::chrono::steady_clock::now());
    pollfd ready{fd, POLLIN, 0};
    const int polled = left.count() <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left.count()));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return limit.passed();
    char buffer[4096];
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return success();
    out.append(buffer, static_cast<std::size_t>(got));
    if (out.size() > kMaxOutput) return invalid("printed more than 1 MiB");
  }
}

// Waits until the plugin exits: it may have closed its output long before.
Status await_exit(pid_t pid, const Limit& limit, int& status) {
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return success();
    if (std::chrono::steady_clock::now() >= limit.end) return limit.passed();
    std::this_thread::sleep_for(kExitPause);
  }
}

Result<std::string> run(const ExecConfig& exec, const std::string& info, bool interactive,
                        std::chrono::milliseconds time) {
  FETTLE_ASSIGN(const Child child, start(exec, info, interactive));
  const Limit limit(time);
  std::string output;
  int status = 0;
  Status ended = read_output(child.output, limit, output);
  ::close(child.output);
  if (ended.ok()) ended = await_exit(child.pid, limit, status);
  if (!ended.ok()) {
    ::kill(child.pid, SIGKILL);
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    return ended.error();
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  return invalid(WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                     : "exit code " + std::to_string(WEXITSTATUS(status)));
}

std::string text_of(const Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : "";
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
  if (text_of(*json, "kind") != "ExecCredential") return invalid("did not print an ExecCredential");
  if (text_of(*json, "apiVersion") != api_version) {
    return invalid("answered with apiVersion \"" + text_of(*json, "apiVersion") + "\", expected " +
                   std::string(api_version));
  }
  const Json* const status = json->find("status");
  if (status == nullptr || !status->is_object()) return invalid("printed no status");
  CachedToken::Fetched out;
  out.credential = {text_of(*status, "token"), text_of(*status, "clientCertificateData"),
                    text_of(*status, "clientKeyData")};
  if (out.credential.certificate.empty() != out.credential.key.empty()) {
    return invalid("printed only one of clientCertificateData and clientKeyData");
  }
  if (out.credential.token.empty() && out.credential.certificate.empty()) {
    return invalid("printed neither a token nor a client certificate");
  }
  if (!out.credential.token.empty()) FETTLE_TRY(check_token(out.credential.token, "status.token"));
  const std::string expires = text_of(*status, "expirationTimestamp");
  if (expires.empty()) return out;
  const std::optional<std::int64_t> expires_ms = api::parse_timestamp(expires);
  if (!expires_ms) {
    return invalid("printed the expirationTimestamp \"" + expires.substr(0, 40) +
                   "\", expected the form 2026-01-31T12:00:00Z");
  }
  out.valid_for = std::chrono::seconds((*expires_ms - now_ms) / 1000);
  return out;
}

std::unique_ptr<TokenSource> exec_credentials(const ClusterConfig& config,
                                              std::chrono::milliseconds limit) {
  return std::make_unique<CachedToken>([config, limit] { return fetch(config, limit); });
}

}  // namespace fettle::kube
