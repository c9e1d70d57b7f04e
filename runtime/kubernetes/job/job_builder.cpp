#include "runtime/kubernetes/job/job_builder.h"

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/pod_template.h"
#include "core/facts/sizing.h"
#include "core/names.h"
#include "core/study/gpu_memory.h"
#include "kube/objects/json_write.h"
#include "kube/objects/resource.h"
#include "runtime/kubernetes/gpu/placement.h"
#include "runtime/kubernetes/gpu/pod_gpus.h"
#include "runtime/kubernetes/job/gang.h"
#include "runtime/kubernetes/job/pod_group.h"
#include "runtime/kubernetes/job/queue.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/pod/pod_builder.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/pod/volume_claim.h"
#include "runtime/make_trial_file.h"

namespace fettle::kubernetes {
namespace {

// Pods are named "<job>-<rank>", with a rank of at most 1023, and that must be a DNS label.
constexpr std::size_t kMaxPodPrefix = 63;

constexpr std::string_view kSharedByNodes = "ReadWriteMany";
constexpr std::string_view kOfOnePod = "ReadWriteOncePod";

// Whether several workers are brought together by Fettle itself, alone (gang.h) or by a group
// (pod_group.h).
bool is_gang(const api::Study& study, const api::Trial& trial) {
  const api::TrialTemplate& wanted = study.spec.trial;
  return trial.spec.workers > 1 && wanted.gang != "none" && !names_kueue(wanted);
}

bool has_group(const api::Study& study, const api::Trial& trial) {
  return trial.spec.workers > 1 && !pod_group_resources(study.spec.trial.gang).empty();
}

// The member `key` of `object`; empty if it has none.
Json object_in(const Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  return found != nullptr && found->is_object() ? *found : Json::object();
}

Status check_name(const std::string& job, std::int64_t workers) {
  const std::string pod = job + "-" + std::to_string(workers - 1);
  if (pod.size() <= kMaxPodPrefix) return success();
  return invalid("its pods would be called " + pod + ", " + std::to_string(pod.size()) +
                 " characters; Kubernetes allows 63; give the Study a shorter name");
}

// Disrupted pods are replaced and count for nothing; any other failure ends the Job at once.
constexpr const char* kFailurePolicy = R"({"rules": [
  {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
]})";

// A volume of the pod itself is deleted with the pod, so a child trial would find no checkpoint.
Status check_checkpoints(const api::Study& study) {
  const api::AlgorithmKind algorithm = study.spec.algorithm.name;
  if (!api::replaces_trials(algorithm) || !volume_claim_of(study).empty()) return success();
  return invalid("under algorithm " + name_of(algorithm) +
                 " trials start from checkpoints of others, which need a volume that all pods "
                 "see; give spec.trial.checkpoints a claim or a size");
}

// Whether only one node can mount the claim. All pods of a Job are made from one template, so
// either all mount it or none does.
bool needs_one_node(const api::Study& study) {
  return is_distributed(study) && makes_volume_claim(study) &&
         study.spec.trial.checkpoints->access_mode != kSharedByNodes;
}

Status check_volume_claim(const api::Study& study) {
  if (!needs_one_node(study)) return success();
  if (study.spec.trial.checkpoints->access_mode != kOfOnePod) return success();
  return invalid(
      "spec.trial.checkpoints.accessMode: ReadWriteOncePod lets one pod mount the claim, and these "
      "trials have several workers; give ReadWriteMany, or ReadWriteOnce for workers on one node");
}

// Adds a pod affinity to the Job itself: the first pod is placed freely, the others follow it.
void keep_on_one_node(const std::string& job, Json& pod_template) {
  const Json selector =
      Json::object({{"matchLabels", Json::object({{"batch.kubernetes.io/job-name", job}})}});
  Json& spec = *pod_template.find("spec");
  Json affinity = object_in(spec, "affinity");
  Json pods = object_in(affinity, "podAffinity");
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const Json* const theirs = pods.find(kRequired);
  Json required = theirs != nullptr && theirs->is_array() ? *theirs : Json::array();
  required.push_back(
      Json::object({{"labelSelector", selector}, {"topologyKey", "kubernetes.io/hostname"}}));
  pods.set(kRequired, std::move(required));
  affinity.set("podAffinity", std::move(pods));
  spec.set("affinity", std::move(affinity));
}

// The gang domain (gang.h): identifies the nodes that pods compete for. A pod group takes no node
// before it can have all of its nodes, so its Job is a domain of its own.
std::string domain_of(const api::Study& study, const std::string& job,
                      const std::optional<GpuPlacement>& gpus, const Json& pod_template) {
  if (!pod_group_resources(study.spec.trial.gang).empty()) {
    return Json::object({{"group", job}, {"namespace", study.metadata.ns}}).dump();
  }
  return Json::object({{"gpu", gpus ? gpus->profile : ""},
                       {"nodeSelector", object_in(*pod_template.find("spec"), "nodeSelector")}})
      .dump();
}

void add_workers(const api::Study& study, const api::Trial& trial, Json& annotations) {
  if (!is_distributed(study)) return;
  annotations.set(kServiceAnnotation, service_of(study));
  annotations.set(kWorkersAnnotation, std::to_string(trial.spec.workers));
  if (const auto least = runtime::least_workers(study)) {
    annotations.set(kMinWorkersAnnotation, std::to_string(*least));
  }
  if (needs_one_node(study)) annotations.set(kOneNodeAnnotation, "true");
  if (has_group(study, trial)) add_pod_group_annotations(study.spec.trial, annotations);
}

// Whether the Job's pods get their nodes in turn (gang.h). A queue opens Jobs by itself.
bool takes_turns(const api::Study& study, const api::Trial& trial,
                 const std::optional<GpuPlacement>& gpus) {
  const bool paced = gpus && gpus->is_paced() && !names_kueue(study.spec.trial);
  return is_gang(study, trial) || paced;
}

Json job_annotations(const api::Study& study, const api::Trial& trial) {
  Json annotations = Json::object({{kUntilStepAnnotation, std::to_string(trial.spec.until_step)}});
  if (!study.spec.trial.trainer) {
    const Json* container = api::trial_container(study.spec.trial.pod_template);
    const Json* name = container == nullptr ? nullptr : container->find("name");
    if (name != nullptr && !(*name == Json(api::kTrialContainer))) {
      annotations.set(kContainerAnnotation, *name);
    }
  }
  return annotations;
}

}  // namespace

api::Study sized_for(api::Study study, const api::Trial& trial) {
  if (core::sizes_gpu_memory(study.spec)) {
    study.spec.trial.gpu->memory = trial.spec.gpu_memory.value_or(core::kFirstGpuMemory);
  }
  return study;
}

Result<Json> build_job(const api::Study& of_all_trials, const api::Trial& trial, std::int64_t run,
                       const JobOptions& options) {
  const api::Study study = sized_for(of_all_trials, trial);
  const std::string name = core::run_name(trial.metadata.name, run);
  FETTLE_TRY(check_name(name, trial.spec.workers));
  FETTLE_TRY(check_checkpoints(study));
  FETTLE_TRY(check_volume_claim(study));
  FETTLE_ASSIGN(const auto gpus, place_gpus(study.spec, options.gpu_profiles));
  FETTLE_ASSIGN(Json pod_template, build_pod_template(study, trial, run, name, options));
  Json metadata = Json::object({{"name", name},
                                {"namespace", trial.metadata.ns},
                                {"labels", Json::object({{core::kStudyLabel, study.metadata.name},
                                                         {kTrialLabel, trial.metadata.name},
                                                         {kRunLabel, std::to_string(run)}})}});
  if (needs_one_node(study)) keep_on_one_node(name, pod_template);
  join_pod_group(study.spec.trial, name, has_group(study, trial), pod_template);
  Json annotations = job_annotations(study, trial);
  if (gpus) {
    annotations.set(kGpusAnnotation, Json(gpus->gpus).dump());
    annotations.set(kGpuProfileAnnotation, gpus->profile);
  }
  add_workers(study, trial, annotations);
  if (takes_turns(study, trial, gpus)) {
    annotations.set(kGangAnnotation, to_string(GangState::kWaiting));
    annotations.set(kGangDomainAnnotation, domain_of(study, name, gpus, pod_template));
  }
  metadata.set("annotations", std::move(annotations));
  metadata.set("ownerReferences", kube::owner_references(kube::kTrials, trial.metadata));
  Json spec = Json::object({{"completionMode", "Indexed"},
                            {"completions", trial.spec.workers},
                            {"parallelism", trial.spec.workers},
                            {"backoffLimit", 0},  // a retry is another Job
                            // A pod is replaced when it has ended: two of one rank would write the
                            // same checkpoints.
                            {"podReplacementPolicy", "Failed"},
                            {"podFailurePolicy", kube::manifest(kFailurePolicy)},
                            {"template", std::move(pod_template)}});
  if (takes_turns(study, trial, gpus)) spec.set("suspend", true);  // until its turn
  Json job = Json::object(
      {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", metadata}, {"spec", spec}});
  // Last: it adds to the labels, the annotations and the failure policy.
  if (names_kueue(study.spec.trial)) join_queue(study.spec.trial, job);
  return job;
}

Json pod_of(const Json& job) {
  const Json& pod_template = *job.find("spec")->find("template");
  Json metadata = *pod_template.find("metadata");
  metadata.set("name", job.find("metadata")->find("name")->as_string() + "-0");
  metadata.set("namespace", *job.find("metadata")->find("namespace"));
  return Json::object({{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"metadata", std::move(metadata)},
                       {"spec", *pod_template.find("spec")}});
}

}  // namespace fettle::kubernetes
