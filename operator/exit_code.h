// What the exit code of fettle-operator means.
#pragma once

namespace fettle::op {

enum ExitCode : int {
  kExitStopped = 0,      // asked to stop, and did
  kExitInvalid = 2,      // a flag or the kubeconfig is wrong
  kExitEnvironment = 3,  // the machine or the cluster failed, or the lease was lost
};

}  // namespace fettle::op
