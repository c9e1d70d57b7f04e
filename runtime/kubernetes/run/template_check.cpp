#include "runtime/kubernetes/run/template_check.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/names.h"
#include "runtime/kubernetes/gpu/placement.h"
#include "runtime/kubernetes/gpu/pod_gpus.h"
#include "runtime/kubernetes/job/job_builder.h"
#include "runtime/kubernetes/job/pod_group.h"
#include "runtime/kubernetes/pod/pod_builder.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/pod/trainer_pod.h"
#include "runtime/kubernetes/pod/volume_claim.h"
#include "runtime/metric_lines.h"

namespace fettle::kubernetes {
namespace {

bool mentions(const Error& error, std::string_view words) {
  return error.message.find(words) != std::string::npos;
}

// A valid value of the parameter.
Json first_value(const api::Parameter& parameter) {
  if (!parameter.values.empty()) return parameter.values.front();
  if (parameter.type == api::ParameterType::kBoolean) return false;
  if (parameter.type == api::ParameterType::kDouble) return parameter.min;
  return static_cast<std::int64_t>(parameter.min);
}

// A trial like the Study's first one, with every parameter at its lower bound.
api::Trial sample_trial(const api::Study& study) {
  api::Trial trial;
  trial.metadata.name = core::trial_name(study.metadata.name, 0);
  trial.metadata.ns = study.metadata.ns;
  // A dry run checks only the form of an owner's uid.
  trial.metadata.uid = study.metadata.uid;
  trial.spec.study = study.metadata.name;
  trial.spec.until_step = study.spec.resource.max;
  trial.spec.workers = study.spec.trial.workers.min;
  for (const api::Parameter& parameter : study.spec.parameters) {
    if (parameter.when) continue;  // a conditional parameter may be absent
    trial.spec.parameters.set(parameter.name, first_value(parameter));
  }
  return trial;
}

// Whether the cluster lacks an object, or the operator a right, that an administrator can add. The
// API has no machine-readable reason for these refusals, so the messages are matched that come from
// the authorizer, the admission plug-ins Priority and ServiceAccount, and admission policies whose
// parameters are missing.
bool needs_administrator(const Error& error) {
  return mentions(error, "cannot create resource") ||
         mentions(error, "no PriorityClass with name") ||
         mentions(error, "error looking up service account") ||
         mentions(error, "failed to configure binding");
}

// The meaning of an answered refusal for the Study. `what`: "Job", "pod" or the kind of claim.
Status judge(const Error& error, const std::string& what) {
  const std::string where = "the API server refuses the " + what + " of a trial";
  if (error.code == ErrorCode::kInvalid) return Error{ErrorCode::kInvalid, error.message}.in(where);
  if (error.code == ErrorCode::kAlreadyExists) return success();  // it passed all checks before
  if (error.code != ErrorCode::kForbidden) return error;          // not known yet (Runs::check)
  if (is_quota_error(error)) return success();
  const ErrorCode code = needs_administrator(error) ? ErrorCode::kUnavailable : ErrorCode::kInvalid;
  const bool unprepared = mentions(error, kTrainerAccount) && mentions(error, "not found");
  const std::string reopened = code == ErrorCode::kUnavailable
                                   ? ""
                                   : "; change spec.trial, or, once the namespace allows it, "
                                     "delete the Study and apply it again";
  const std::string way_out =
      unprepared ? "; is this namespace in the chart's studyNamespaces?" : reopened;
  return Error{code, error.message + way_out}.in(where);
}

// The server drops unknown fields with a warning: a typo would only show in the trials.
Status check_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    if (warning.find("unknown field") == std::string::npos) continue;
    return invalid("the API server says of a trial's pod template: " + warning);
  }
  return success();
}

Status dry_run_create(kube::Client& client, const kube::Resource& resource, const Json& object,
                      const std::string& ns, const std::string& what) {
  const Result<kube::Written> written = client.create(resource, ns, object, {.dry_run = true});
  return written.ok() ? check_warnings(written->warnings) : judge(written.error(), what);
}

// Checks that the cluster has the pod groups of spec.trial.gang. No discovery: a group that is not
// served, or that this operator may not make, is refused in the same words as when a trial starts.
Status try_pod_group(kube::Client& client, const api::Study& study, const Json& job) {
  const std::string& gang = study.spec.trial.gang;
  FETTLE_ASSIGN(kube::Job owner, kube::read_job(job));
  owner.metadata.uid = study.metadata.uid;  // a dry run checks only the form of an owner's uid
  for (const kube::Resource& resource : pod_group_resources(gang)) {
    const Result<kube::Written> written = client.create(
        resource, study.metadata.ns, build_pod_group(owner, resource), {.dry_run = true});
    if (written.ok()) return success();
    // kNotFound: the cluster does not serve this version; an older one follows.
    if (written.error().code != ErrorCode::kNotFound) return judge(written.error(), "PodGroup");
  }
  return Error{ErrorCode::kUnavailable, "spec.trial.gang: this cluster has no PodGroups of " +
                                            std::string(pod_group_resources(gang).front().group) +
                                            ", which gang " + gang +
                                            " needs; use auto, which needs none"};
}

Status check_execution(const api::TrialTemplate& trial) {
  const bool is_warm = trial.execution == api::Execution::kWarm;
  if (!is_warm && trial.slots < 2) return success();
  return invalid(std::string(is_warm ? "spec.trial.execution: Warm" : "spec.trial.slots") +
                 " works without a cluster so far, with fettle run; on a cluster each run of a "
                 "trial is a Job: remove it");
}

}  // namespace

bool is_quota_error(const Error& error) {
  // The second phrase: a quota that was made a moment ago has no counts yet.
  return error.code == ErrorCode::kForbidden &&
         (mentions(error, "exceeded quota") || mentions(error, "status unknown for quota"));
}

Status check_template(kube::Client& client, const api::Study& study, const JobOptions& options) {
  if (const auto& metrics = study.spec.trial.metrics) {
    FETTLE_TRY(runtime::check_metrics_filter(*metrics));
  }
  if (!study.spec.trial.pass_environment.empty()) {
    return invalid(
        "spec.trial.passEnvironment: a cluster does not have the environment of the user who "
        "applies the Study; put the variables into a Secret and name it under env or envFrom of "
        "the template's container");
  }
  FETTLE_TRY(check_execution(study.spec.trial));
  FETTLE_ASSIGN(const Json job, build_job(study, sample_trial(study), 0, options));
  FETTLE_ASSIGN(const auto gpus, place_gpus(study.spec, options.gpu_profiles));
  if (gpus && !gpus->claim.is_null()) {  // null: GPUs are requested as a resource, not claimed
    const kube::Resource& resource = gpu_claim_resource(*gpus);
    FETTLE_TRY(dry_run_create(client, resource, build_gpu_claim(study, *gpus), study.metadata.ns,
                              std::string(resource.kind)));
  }
  FETTLE_TRY(dry_run_create(client, kube::kJobs, job, study.metadata.ns, "Job"));
  if (is_distributed(study)) {
    FETTLE_TRY(dry_run_create(client, kube::kServices, build_service(study), study.metadata.ns,
                              "Service"));
  }
  const bool grouped = study.spec.trial.workers.max > 1;
  if (grouped && !pod_group_resources(study.spec.trial.gang).empty()) {
    FETTLE_TRY(try_pod_group(client, study, job));
  }
  return dry_run_create(client, kube::kPods, pod_of(job), study.metadata.ns, "pod");
}

std::vector<TemplateWarning> template_warnings(const api::Study& study) {
  std::vector<TemplateWarning> warnings;
  // "": no claim, or a claim of the user's, whose mode is not known here.
  const std::string mode =
      makes_volume_claim(study) ? study.spec.trial.checkpoints->access_mode : "";
  const std::int64_t trials = study.spec.budget.parallelism;
  if (trials > 1 && (mode == "ReadWriteOnce" || mode == "ReadWriteOncePod")) {
    warnings.push_back(
        {"OneNodeVolume",
         "its checkpoints are on a " + mode + " volume and up to " + std::to_string(trials) +
             " trials run at once: on other nodes than the first they wait for the volume; use "
             "spec.trial.checkpoints.accessMode ReadWriteMany, or keep them on one node"});
  }
  if (const auto& metrics = study.spec.trial.metrics) {
    std::string warning = runtime::metrics_filter_warning(*metrics);
    if (!warning.empty()) warnings.push_back({"MetricsMissNaN", std::move(warning)});
  }
  return warnings;
}

}  // namespace fettle::kubernetes
