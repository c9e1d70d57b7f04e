// The pod of the built-in trainer: what the restricted Pod Security Standard asks for, a read-only
// root file system, and a token with which it may report and nothing else; over that what the
// administrator wants in every trainer's pod, and over that spec.trial.pod.
// Pure; usable from any thread.
#pragma once

#include "api/study.h"
#include "base/json.h"
#include "base/result.h"
#include "runtime/kubernetes/job_builder.h"

namespace fettle::kubernetes {

// The service account whose pods may write reports; the chart makes it.
inline constexpr const char* kTrainerAccount = "fettle-trainer";

// A pod template without what every trial gets (pod_builder.h). kInvalid: no trainer_image.
Result<Json> trainer_pod(const api::Study& study, const JobOptions& options);

}  // namespace fettle::kubernetes
