#include "operator/connection.h"

#include <cstdlib>

#include "kube/transport/cluster_config.h"

namespace fettle::op {

namespace {

Result<kube::ClusterConfig> find_cluster(const std::string& kubeconfig) {
  if (kubeconfig.empty()) {
    Result<kube::ClusterConfig> config =
        kube::in_cluster_config([](const char* name) -> const char* { return std::getenv(name); });
    if (config.ok() || config.error().code != ErrorCode::kNotFound) return config;
  }
  kube::ConfigOptions options;
  options.kubeconfig = kubeconfig;
  return kube::load_cluster_config(options);
}

}  // namespace

Result<Connection> connect(const std::string& kubeconfig) {
  FETTLE_ASSIGN(const kube::ClusterConfig config, find_cluster(kubeconfig));
  if (!config.tls.ca.empty()) kube::forget_system_authorities();
  const std::string agent = "fettle-operator/" FETTLE_VERSION;
  Connection connection;
  connection.server = config.server;
  connection.ns = config.ns;
  FETTLE_ASSIGN(connection.transport, kube::connect(config, agent));
  FETTLE_ASSIGN(connection.lease_transport, kube::connect(config, agent));
  return connection;
}

}  // namespace fettle::op
