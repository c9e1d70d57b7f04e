// What fettle-operator is told on its command line. The only file that knows CLI11 is options.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "kube/leader_election.h"
#include "operator/log.h"

namespace fettle::op {

struct Options {
  std::vector<std::string> namespaces;  // empty = all
  std::string kubeconfig;               // "" = in a pod its service account, else kubectl's rules
  std::string trainer_image;
  Json trainer_pod = {};  // what the file said (runtime/kubernetes/pod_patch.h); null = none
  bool leader_elect = true;
  std::string lease_namespace;  // "" = the one we run in
  std::string lease_name = "fettle-operator";
  kube::LeaseTimes lease_times;
  std::uint16_t metrics_port = 8080;
  std::uint16_t health_port = 8081;
  double gang_timeout = 120;  // seconds in which the workers of a trial must all have a node
  int workers = 4;
  double calls_per_second = 1'000;  // to the API server, watches and the Lease aside
  double longest_look_s = 300;      // a look at an object that takes longer is stuck
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  bool check = false;  // look whether an operator with these options works, and end
};

// The program ends at once: after --help, --version or a flag that is wrong.
struct Farewell {
  int exit_code = 0;
  std::string text;  // on standard output when the code is 0, else on standard error
};

// Reads the files that are named, too.
std::variant<Options, Farewell> read_options(int argc, const char* const* argv);

}  // namespace fettle::op
