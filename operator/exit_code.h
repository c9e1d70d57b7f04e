// Exit codes of fettle-operator.
#pragma once

namespace fettle::op {

enum ExitCode : int {
  kExitStopped = 0,      // stopped on request
  kExitInvalid = 2,      // a flag or the kubeconfig is wrong
  kExitEnvironment = 3,  // the machine or the cluster failed, or the lease was lost
};

}  // namespace fettle::op
