// The pod of the built-in trainer: what the restricted Pod Security Standard asks for, a read-only
// root file system, and a token with which it may report and nothing else; and spec.trial.pod.
// Pure; usable from any thread.
#pragma once

#include <string>

#include "api/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

// The service account whose pods may write reports; the chart makes it.
inline constexpr const char* kTrainerAccount = "fettle-trainer";

// A pod template without what every trial gets (pod_builder.h). kInvalid: `image` is "".
Result<Json> trainer_pod(const api::Study& study, const std::string& image);

}  // namespace fettle::kubernetes
