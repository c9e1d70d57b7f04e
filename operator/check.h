// `fettle-operator --check`: checks through the API server that an operator with the same options
// works. `helm test` runs it.
#pragma once

#include <string>

#include "base/result.h"
#include "kube/client/client.h"
#include "operator/log.h"
#include "operator/options.h"

namespace fettle::op {

// Waits at most one lease duration for a renewal. Logs each check; the error is the first failure.
// `home`: the namespace that the check runs in.
Status check_installation(kube::Client& client, const Options& options, const std::string& home,
                          Log& log);

}  // namespace fettle::op
