#include "operator/options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <sstream>

#include "api/label_syntax.h"
#include "operator/exit_code.h"

namespace fettle::op {

namespace {

constexpr int kMostWorkers = 64;

const std::map<std::string, LogLevel> kLevels = {{"debug", LogLevel::kDebug},
                                                 {"info", LogLevel::kInfo},
                                                 {"warning", LogLevel::kWarning},
                                                 {"error", LogLevel::kError}};
const std::map<std::string, LogFormat> kFormats = {{"text", LogFormat::kText},
                                                   {"json", LogFormat::kJson}};

// A DNS label, as names of namespaces and Leases are. "" = it is one.
std::string check_dns_label(const std::string& text) {
  const bool good = text.size() <= api::kLongestLabelName && api::is_dns_label(text);
  return good ? "" : "'" + text + "' is not a name: up to 63 of a-z, 0-9 and -";
}

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
         flag, [&value, &choices](const std::string& name) { value = choices.at(name); },
         help + " (" + fallback + ")")
      ->check(CLI::IsMember(choices))
      ->type_name(names);
}

void add_places(CLI::App& app, Options& options) {
  app.add_option("--namespace", options.namespaces,
                 "A namespace to work in; may be given several times (all)")
      ->check(check_dns_label)
      ->type_name("NS");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Which cluster (in a pod its service account, else as kubectl)")
      ->type_name("FILE");
  app.add_option("--trainer-image", options.trainer_image, "Image of the built-in trainer")
      ->type_name("IMAGE");
}

void add_election(CLI::App& app, Options& options) {
  app.add_option("--leader-elect", options.leader_elect,
                 "Take part in leader election, so that there may be several replicas (true)")
      ->expected(0, 1)
      ->default_val(true)
      ->default_str("")
      ->type_name("BOOL");
  app.add_option("--lease-namespace", options.lease_namespace,
                 "Namespace of the Lease (where the operator runs)")
      ->check(check_dns_label)
      ->type_name("NS");
  app.add_option("--lease-name", options.lease_name, "Name of the Lease (fettle-operator)")
      ->check(check_dns_label)
      ->type_name("NAME");
}

void add_rest(CLI::App& app, Options& options) {
  app.add_option("--metrics-port", options.metrics_port, "Port of /metrics (8080)")
      ->type_name("PORT");
  app.add_option("--health-port", options.health_port, "Port of /healthz and /readyz (8081)")
      ->type_name("PORT");
  app.add_option("--workers", options.workers, "Threads that look after Studies and Trials (4)")
      ->check(CLI::Range(1, kMostWorkers))
      ->type_name("N");
  app.add_option("--calls-per-second", options.calls_per_second,
                 "Calls to the API server at most (1000)")
      ->check(CLI::Range(1.0, 1e6))
      ->type_name("N");
  add_choice(app, "--log-level", options.log_level, kLevels, "What to log");
  add_choice(app, "--log-format", options.log_format, kFormats, "For people or for machines");
}

}  // namespace

std::variant<Options, Farewell> read_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Runs Studies of fettle.dev on a Kubernetes cluster.", "fettle-operator");
  app.set_version_flag("--version", "fettle-operator " FETTLE_VERSION);
  app.footer("Exit codes: 0 stopped, 2 a flag is wrong, 3 the cluster, the machine or the lease.");
  add_places(app, options);
  add_election(app, options);
  add_rest(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = app.exit(error, out, err);
    return code == 0 ? Farewell{kExitStopped, out.str()} : Farewell{kExitInvalid, err.str()};
  }
  return options;
}

}  // namespace fettle::op
