// Checks for the admission policies that the chart installs for the cluster. The operator works
// without them, but then a trial's pod may write anything into the Trials of its namespace.
// No state; usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client/client.h"

namespace fettle::op {

// The names of policies that are missing or not bound. Errors: they cannot be read.
Result<std::vector<std::string>> missing_policies(kube::Client& client);

}  // namespace fettle::op
