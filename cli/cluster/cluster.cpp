#include "cli/cluster/cluster.h"

#include <utility>

#include "cli/terminal/text.h"
#include "kube/transport/cluster_config.h"

namespace fettle::cli {

Result<Cluster> reach_cluster(const Target& place) {
  kube::ConfigOptions options;
  options.kubeconfig = place.kubeconfig;
  options.context = place.context;
  options.allow_exec = true;  // for people, as kubectl does
  FETTLE_ASSIGN(const kube::ClusterConfig config, kube::load_cluster_config(options));
  FETTLE_ASSIGN(auto transport, kube::connect(config, "fettle/" FETTLE_VERSION));
  Cluster cluster;
  cluster.transport = std::move(transport);
  cluster.ns = !place.ns.empty() ? place.ns : config.ns.empty() ? "default" : config.ns;
  cluster.program = place.program;
  cluster.kubectl = "kubectl";
  if (!place.kubeconfig.empty()) cluster.kubectl += " --kubeconfig " + shell_word(place.kubeconfig);
  if (!place.context.empty()) cluster.kubectl += " --context " + shell_word(place.context);
  cluster.kubectl += " -n " + shell_word(cluster.ns);
  return cluster;
}

}  // namespace fettle::cli
