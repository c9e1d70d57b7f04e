// Builds the pod template of a run's Job: the built-in trainer's or the user's, plus the parts that
// every trial needs. Pure, usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "runtime/kubernetes/pod/job_options.h"

namespace fettle::kubernetes {

inline constexpr const char* kTrialFile = "/fettle/trial.json";
inline constexpr const char* kCheckpoints = "/fettle/checkpoints";

// Whether the Study's trials may have several workers, which then need to find each other.
bool is_distributed(const api::Study& study);

// `job`: the name of the template's Job. kInvalid, in words: the Study cannot run.
Result<Json> build_pod_template(const api::Study& study, const api::Trial& trial, std::int64_t run,
                                const std::string& job, const JobOptions& options);

}  // namespace fettle::kubernetes
