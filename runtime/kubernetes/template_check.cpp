#include "runtime/kubernetes/template_check.h"

#include <string>
#include <string_view>
#include <vector>

#include "core/names.h"
#include "runtime/kubernetes/trainer_pod.h"
#include "runtime/metric_lines.h"

namespace fettle::kubernetes {
namespace {

bool says(const Error& error, std::string_view words) {
  return error.message.find(words) != std::string::npos;
}

// Some value that the parameter may have.
Json first_value(const api::Parameter& parameter) {
  if (!parameter.values.empty()) return parameter.values.front();
  if (parameter.type == api::ParameterType::kBoolean) return false;
  if (parameter.type == api::ParameterType::kDouble) return parameter.min;
  return static_cast<std::int64_t>(parameter.min);
}

// A trial as the Study's first one would be, at the lower end of every parameter.
api::Trial sample_trial(const api::Study& study) {
  api::Trial trial;
  trial.metadata.name = core::trial_name(study.metadata.name, 0);
  trial.metadata.ns = study.metadata.ns;
  // A dry run looks at the form of an owner's uid only.
  trial.metadata.uid = study.metadata.uid;
  trial.spec.study = study.metadata.name;
  trial.spec.until_step = study.spec.resource.max;
  trial.spec.workers = study.spec.trial.workers.min;
  for (const api::Parameter& parameter : study.spec.parameters) {
    if (parameter.when) continue;
    trial.spec.parameters.set(parameter.name, first_value(parameter));
  }
  return trial;
}

// Whether the cluster lacks what the Study asks for, or the operator a right: the Study is
// innocent, and an administrator may mend it. These refusals have no reason for machines but their
// words: those of the authorizer, of the admission plug-ins Priority and ServiceAccount, and of
// admission policies whose parameters are missing.
bool is_for_others_to_mend(const Error& error) {
  return says(error, "cannot create resource") || says(error, "no PriorityClass with name") ||
         says(error, "error looking up service account") ||
         says(error, "failed to configure binding");
}

// What an answered refusal means for the Study. `what`: "Job" or "pod".
Status judge(const Error& error, const std::string& what) {
  const std::string where = "the API server refuses the " + what + " of a trial";
  if (error.code == ErrorCode::kInvalid) return Error{ErrorCode::kInvalid, error.message}.in(where);
  if (error.code == ErrorCode::kAlreadyExists) return success();
  if (error.code != ErrorCode::kForbidden) return error;
  if (is_about_quota(error)) return success();
  const ErrorCode code =
      is_for_others_to_mend(error) ? ErrorCode::kUnavailable : ErrorCode::kInvalid;
  const bool unprepared = says(error, kTrainerAccount) && says(error, "not found");
  const std::string way_out =
      unprepared ? "; is this namespace in the chart's studyNamespaces?" : "";
  return Error{code, error.message + way_out}.in(where);
}

// The server takes fields it does not know, and drops them; a typo would only show in the trials.
Status find_typo(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    if (warning.find("unknown field") == std::string::npos) continue;
    return invalid("the API server says of a trial's pod template: " + warning);
  }
  return success();
}

Status try_out(kube::Client& client, const kube::Resource& resource, const Json& object,
               const std::string& ns, const std::string& what) {
  const Result<kube::Written> written = client.create(resource, ns, object, {.dry_run = true});
  return written.ok() ? find_typo(written->warnings) : judge(written.error(), what);
}

}  // namespace

bool is_about_quota(const Error& error) {
  return error.code == ErrorCode::kForbidden && says(error, "exceeded quota");
}

Status check_template(kube::Client& client, const api::Study& study, const JobOptions& options) {
  if (const auto& metrics = study.spec.trial.metrics) {
    FETTLE_TRY(runtime::check_metrics_filter(*metrics));
  }
  if (!study.spec.trial.pass_environment.empty()) {
    return invalid(
        "spec.trial.passEnvironment: a cluster has not the environment of who applies the Study; "
        "put the variables into a Secret and name it under env or envFrom of the template's "
        "container");
  }
  FETTLE_ASSIGN(const Json job, build_job(study, sample_trial(study), 0, options));
  FETTLE_TRY(try_out(client, kube::kJobs, job, study.metadata.ns, "Job"));
  return try_out(client, kube::kPods, pod_of(job), study.metadata.ns, "pod");
}

}  // namespace fettle::kubernetes
