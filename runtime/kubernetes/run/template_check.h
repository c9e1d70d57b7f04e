// Checks by dry runs, before any trial is created, whether the API server accepts a Study's Jobs
// and pods.
//
// The server accepts a Job with a forbidden pod template and refuses its pods later; so the pod is
// checked as well. An exhausted quota is no fault of the template. A call for each kind of object
// that a trial needs; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "api/study/study.h"
#include "base/result.h"
#include "kube/client/client.h"
#include "runtime/kubernetes/pod/job_options.h"

namespace fettle::kubernetes {

// kInvalid: it can never start, with the API server's reason. kUnavailable: the server cannot be
// reached, or an administrator must act: missing RBAC of the operator, priority class or service
// account.
Status check_template(kube::Client& client, const api::Study& study, const JobOptions& options);

// A risk of a Study whose template is accepted: a volume that only one node can mount at a time, a
// filter of metrics that misses NaN.
struct TemplateWarning {
  std::string reason;  // of an event
  std::string message;
};
// Pure.
std::vector<TemplateWarning> template_warnings(const api::Study& study);

// Whether a kForbidden is an exhausted quota, which is temporary.
bool is_quota_error(const Error& error);

}  // namespace fettle::kubernetes
