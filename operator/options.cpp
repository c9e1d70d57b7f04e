#include "operator/options.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <sstream>
#include <utility>

#include "api/fields/label_syntax.h"
#include "base/file.h"
#include "runtime/kubernetes/pod/pod_patch.h"

namespace fettle::op {

namespace {

constexpr int kMaxWorkers = 64;
constexpr int kMaxLeaseSeconds = 3600;

const std::map<std::string, LogLevel> kLevels = {{"debug", LogLevel::kDebug},
                                                 {"info", LogLevel::kInfo},
                                                 {"warning", LogLevel::kWarning},
                                                 {"error", LogLevel::kError}};
const std::map<std::string, LogFormat> kFormats = {{"text", LogFormat::kText},
                                                   {"json", LogFormat::kJson}};

// Checks for a DNS label, the form of names of namespaces and Leases. "" = valid.
std::string check_dns_label(const std::string& text) {
  const bool good = text.size() <= api::kLongestLabelName && api::is_dns_label(text);
  return good ? "" : "'" + text + "' is not a name: up to 63 of a-z, 0-9 and -";
}

// Adds an option whose value is one of `choices`, given by name. `value` holds the default and is
// set when `app` parses, so it must live until then.
template <class E>
void add_choice(CLI::App& app, const std::string& flag, E& value,
                const std::map<std::string, E>& choices, const std::string& help) {
  std::string names;
  std::string fallback;
  for (const auto& [name, choice] : choices) {
    names += (names.empty() ? "" : "|") + name;
    if (choice == value) fallback = name;
  }
  app.add_option_function<std::string>(
         flag, [&value, choices](const std::string& name) { value = choices.at(name); },
         help + " (" + fallback + ")")
      ->check(CLI::IsMember(choices))
      ->type_name(names);
}

Json read_trainer_pod(const std::string& path) {
  const auto fail = [&path](const Error& error) {
    // CLI11 reports it like a wrong flag; the lines after a call see only successes.
    throw CLI::ValidationError("--trainer-pod", path + ": " + error.message);
  };
  const Result<std::string> text = read_file(path);
  if (!text.ok()) fail(text.error());
  Result<Json> patch = parse_json(*text);
  if (!patch.ok()) fail(patch.error());
  const Status checked = kubernetes::check_pod_patch(*patch);
  if (!checked.ok()) fail(checked.error());
  return std::move(patch).value();
}

void add_seconds(CLI::App& app, const std::string& flag, std::chrono::milliseconds& time,
                 const std::string& help) {
  const std::string fallback = std::to_string(time.count() / 1000);
  app.add_option_function<int>(
         flag, [&time](int seconds) { time = std::chrono::seconds(seconds); },
         help + " (" + fallback + ")")
      ->check(CLI::Range(1, kMaxLeaseSeconds))
      ->type_name("SECONDS");
}

// See kube::LeaseTimes.
void check_lease_times(const kube::LeaseTimes& times) {
  if (times.lease > times.renew && times.renew * 5 > times.retry * 6) return;
  throw CLI::ValidationError(
      "--lease-duration must be above --lease-renew, and that above 1.2 times --lease-retry");
}

void add_places(CLI::App& app, Options& options) {
  app.add_option("--namespace", options.namespaces,
                 "A namespace to work in; may be given several times (all)")
      ->check(check_dns_label)
      ->type_name("NS");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Kubeconfig of the cluster, read by kubectl (in a pod its service account)")
      ->type_name("FILE");
  app.add_option("--trainer-image", options.trainer_image, "Image of the built-in trainer")
      ->type_name("IMAGE");
  app.add_option_function<std::string>(
         "--trainer-pod",
         [&options](const std::string& path) { options.trainer_pod = read_trainer_pod(path); },
         "JSON pod template, merged into the pods of the built-in trainer")
      ->type_name("FILE");
  app.add_option("--gpu-profiles", options.gpu_profiles,
                 "JSON list of GPU profiles; read again when it changes (whole GPUs of "
                 "nvidia.com/gpu)")
      ->type_name("FILE");
}

void add_election(CLI::App& app, Options& options) {
  app.add_option("--leader-elect", options.leader_elect,
                 "Take part in leader election, so that there may be several replicas (true)")
      ->expected(0, 1)
      ->default_val(true)
      ->default_str("")  // the help names it already
      ->type_name("BOOL");
  app.add_option("--lease-namespace", options.lease_namespace,
                 "Namespace of the Lease (where the operator runs)")
      ->check(check_dns_label)
      ->type_name("NS");
  app.add_option("--lease-name", options.lease_name, "Name of the Lease (fettle-operator)")
      ->check(check_dns_label)
      ->type_name("NAME");
  add_seconds(app, "--lease-duration", options.lease_times.lease,
              "Seconds without a renewal after which another replica takes over");
  add_seconds(app, "--lease-renew", options.lease_times.renew,
              "Seconds without a successful renewal after which the leader gives up");
  add_seconds(app, "--lease-retry", options.lease_times.retry,
              "Seconds between renewals of the Lease");
}

void add_rest(CLI::App& app, Options& options) {
  app.add_option("--metrics-port", options.metrics_port, "Port of /metrics (8080)")
      ->type_name("PORT");
  app.add_option("--health-port", options.health_port, "Port of /healthz and /readyz (8081)")
      ->type_name("PORT");
  app.add_option("--workers", options.workers, "Threads that reconcile Studies and Trials (4)")
      ->check(CLI::Range(1, kMaxWorkers))
      ->type_name("N");
  app.add_option("--gang-timeout", options.gang_timeout,
                 "Seconds in which the workers of a trial must all have a node (120)")
      ->check(CLI::Range(1.0, 86'400.0))
      ->type_name("SECONDS");
  app.add_option("--start-timeout", options.start_timeout,
                 "Seconds in which a pod that has a node must start (1800)")
      ->check(CLI::Range(1.0, 1e6))
      ->type_name("SECONDS");
  app.add_option("--calls-per-second", options.calls_per_second,
                 "Maximum calls to the API server per second (1000)")
      ->check(CLI::Range(1.0, 1e6))
      ->type_name("N");
  app.add_flag("--check", options.check,
               "Check that an operator started with the same flags works, and exit");
  app.add_option(
         "--reconcile-timeout", options.reconcile_timeout_s,
         "Seconds after which a reconcile is stuck: /healthz fails and the lease is given up (300)")
      ->check(CLI::Range(1.0, 1e6))
      ->type_name("SECONDS");
  add_choice(app, "--log-level", options.log_level, kLevels, "Least severe level to log");
  add_choice(app, "--log-format", options.log_format, kFormats,
             "Format of the log: for people or for programs");
}

}  // namespace

std::variant<Options, ParseExit> read_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Runs Studies of fettle.dev on a Kubernetes cluster.", "fettle-operator");
  app.set_version_flag("--version", "fettle-operator " FETTLE_VERSION);
  app.footer("Exit codes: 0 stopped, 2 a flag is wrong, 3 the cluster, the machine or the lease.");
  add_places(app, options);
  add_election(app, options);
  add_rest(app, options);
  try {
    app.parse(argc, argv);
    check_lease_times(options.lease_times);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = app.exit(error, out, err);  // 0 for --help and --version, which throw, too
    return code == 0 ? ParseExit{kExitStopped, out.str()} : ParseExit{kExitInvalid, err.str()};
  }
  return options;
}

}  // namespace fettle::op
