// Builds the Job of a run: pure functions from Study and Trial to Kubernetes objects, following the
// worker contract.
//
// The Job is Indexed with completions = parallelism = workers, which can be changed together to
// resize it. It replaces disrupted pods and nothing else: every other retry is a new run. A user's
// template is preserved; labels, the trial file, the checkpoints and the environment are added, and
// a variable that the user sets wins. Values are data: `$` is escaped as `$$`, because Kubernetes
// expands $(NAME) in values. Usable from any thread.
#pragma once

#include <cstdint>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "runtime/kubernetes/pod/job_options.h"

namespace fettle::kubernetes {

// The Study adapted to the trial: with gpu: {memory: auto} the trial sets the amount.
api::Study sized_for(api::Study study, const api::Trial& trial);

// The Job of run `run`. kInvalid: the Study can never run as it is written, with the reason.
Result<Json> build_job(const api::Study& study, const api::Trial& trial, std::int64_t run,
                       const JobOptions& options);

// The pod that the Job controller would create from `job`, for a dry run.
Json pod_of(const Json& job);

}  // namespace fettle::kubernetes
