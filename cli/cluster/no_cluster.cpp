// The functions of the cluster side for builds without Kubernetes.
#include "cli/cluster/cluster.h"

namespace fettle::cli {

Result<Cluster> reach_cluster(const Target&) {
  return io_error(
      "this fettle was built without Kubernetes, so it runs studies on this machine only; build it "
      "with FETTLE_KUBE=ON");
}

}  // namespace fettle::cli
