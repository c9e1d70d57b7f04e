// `fettle-operator --check`: whether an operator that was started with the same options works, seen
// from the API server. What `helm test` runs.
#pragma once

#include <string>

#include "base/result.h"
#include "kube/client.h"
#include "operator/log.h"
#include "operator/options.h"

namespace fettle::op {

// Waits at most one lease duration for a sign of life. Logs each thing that it finds; an error, in
// words, for the first that is wrong. `home`: the namespace it runs in.
Status check_installation(kube::Client& client, const Options& options, const std::string& home,
                          Log& log);

}  // namespace fettle::op
