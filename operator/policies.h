// The admission policies that the chart installs for all of a cluster, seen from the operator: it
// works without them, but then a trial's pod may write what it likes into its namespace's Trials.
// No state; usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client.h"

namespace fettle::op {

// The names of policies that are not there, or bound to nothing. An error: it cannot be seen.
Result<std::vector<std::string>> missing_policies(kube::Client& client);

}  // namespace fettle::op
