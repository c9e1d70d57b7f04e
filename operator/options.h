// The command line of fettle-operator. Only options.cpp uses CLI11.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "kube/election/leader_election.h"
#include "operator/log.h"

namespace fettle::op {

struct Options {
  std::vector<std::string> namespaces;  // empty = all
  std::string kubeconfig;               // "" = in a pod its service account, else as kubectl
  std::string trainer_image;
  Json trainer_pod = {};     // the file's content (runtime/kubernetes/pod/pod_patch.h); null = none
  std::string gpu_profiles;  // a file (runtime/kubernetes/gpu/catalogue.h); "" = none
  bool leader_elect = true;
  std::string lease_namespace;  // "" = the operator's own
  std::string lease_name = "fettle-operator";
  kube::LeaseTimes lease_times;
  std::uint16_t metrics_port = 8080;
  std::uint16_t health_port = 8081;
  double start_timeout = 1800;  // seconds in which a pod that has a node must start
  double gang_timeout = 120;    // seconds for all workers of a trial to get a node
  int workers = 4;
  double calls_per_second = 1'000;   // to the API server, excluding watches and the Lease
  double reconcile_timeout_s = 300;  // a longer reconcile counts as stuck
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  bool check = false;  // check that an operator with these options works, and exit
};

// Exit codes of fettle-operator.
enum ExitCode : int {
  kExitStopped = 0,      // stopped on request
  kExitInvalid = 2,      // a flag or the kubeconfig is wrong
  kExitEnvironment = 3,  // the machine or the cluster failed, or the lease was lost
};

// The program exits at once: after --help, --version or an invalid flag.
struct ParseExit {
  int exit_code = 0;
  std::string text;  // on standard output when the code is 0, else on standard error
};

// Also reads the files that options name.
std::variant<Options, ParseExit> read_options(int argc, const char* const* argv);

}  // namespace fettle::op
