// The pod of the built-in trainer: it meets the restricted Pod Security Standard, has a read-only
// root file system and a token that allows reporting and nothing else. The administrator's patch is
// merged into it, and then spec.trial.pod.
// Pure; usable from any thread.
#pragma once

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"
#include "runtime/kubernetes/pod/job_options.h"

namespace fettle::kubernetes {

// The service account whose pods may write reports; the chart makes it.
inline constexpr const char* kTrainerAccount = "fettle-trainer";

// The template without the additions that every trial gets (pod_builder.h). kInvalid: no
// trainer_image.
Result<Json> trainer_pod(const api::Study& study, const JobOptions& options);

}  // namespace fettle::kubernetes
