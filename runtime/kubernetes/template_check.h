// Whether the API server takes a Study's Jobs and pods, asked by dry runs before any trial is made.
//
// A Job with a forbidden template is taken, and its pods are refused later; so the pod is tried
// too. A quota that is full now says nothing about the template. Makes two calls; thread-safe.
#pragma once

#include "api/study.h"
#include "base/result.h"
#include "kube/client.h"
#include "runtime/kubernetes/job_builder.h"

namespace fettle::kubernetes {

// kInvalid: it can never start, in the API server's words. kUnavailable: it could not be asked, or
// an administrator may mend it: rights of the operator, a priority class or account that is not
// there.
Status check_template(kube::Client& client, const api::Study& study, const JobOptions& options);

// Whether a refusal (kForbidden) is about how much there is already, and passes.
bool is_about_quota(const Error& error);

}  // namespace fettle::kubernetes
