#include "runtime/kubernetes/job/pod_group.h"

#include <utility>

#include "api/study/study_names.h"
#include "kube/objects/json_write.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/run_of_job.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::kubernetes {
namespace {

using kube::map_of;
using kube::number_in;
using kube::text_in;

constexpr kube::Resource kNative{"scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup"};
constexpr kube::Resource kNativeAlpha{"scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup"};
constexpr kube::Resource kCoscheduling{"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"};
constexpr kube::Resource kVolcano{"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"};
constexpr kube::Resource kKai{"scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup"};

// Labels and annotations that pods, Jobs and PodGroups have for their schedulers.
constexpr const char* kCoschedulingLabel = "scheduling.x-k8s.io/pod-group";
constexpr const char* kVolcanoGroup = "scheduling.k8s.io/group-name";
constexpr const char* kVolcanoQueue = "volcano.sh/queue-name";
constexpr const char* kKaiGroup = "pod-group-name";
constexpr const char* kKaiSkip = "kai.scheduler/skip-podgrouper";
constexpr const char* kKaiQueue = "kai.scheduler/queue";

void use_scheduler(const char* name, Json& pod_template) {
  Json& spec = map_of(pod_template, "spec");
  if (spec.find("schedulerName") == nullptr) spec.set("schedulerName", name);
}

}  // namespace

std::vector<kube::Resource> pod_group_resources(std::string_view gang) {
  if (gang == "native") return {kNative, kNativeAlpha};
  if (gang == "coscheduling") return {kCoscheduling};
  if (gang == "volcano") return {kVolcano};
  if (gang == "kai") return {kKai};
  return {};
}

void join_pod_group(const api::TrialTemplate& trial, const std::string& job, bool grouped,
                    Json& pod_template) {
  Json& metadata = map_of(pod_template, "metadata");
  // Volcano and KAI also schedule single pods, for their queues.
  if (trial.gang == "native" && grouped) {
    map_of(pod_template, "spec").set("schedulingGroup", Json::object({{"podGroupName", job}}));
  } else if (trial.gang == "coscheduling" && grouped) {
    map_of(metadata, "labels").set(kCoschedulingLabel, job);
  } else if (trial.gang == "volcano") {
    use_scheduler("volcano", pod_template);
    if (grouped) map_of(metadata, "annotations").set(kVolcanoGroup, job);
    if (!trial.queue.empty()) map_of(metadata, "annotations").set(kVolcanoQueue, trial.queue);
  } else if (trial.gang == "kai") {
    use_scheduler("kai-scheduler", pod_template);
    if (grouped) map_of(metadata, "annotations").set(kKaiGroup, job);
    map_of(metadata, "labels").set(kKaiQueue, trial.queue);  // never empty: check_study
  }
}

void add_pod_group_annotations(const api::TrialTemplate& trial, Json& annotations) {
  annotations.set(kPodGroupAnnotation, trial.gang);
  if (api::gang_has_queue(trial.gang) && !trial.queue.empty()) {
    annotations.set(kPodGroupQueueAnnotation, trial.queue);
  }
  // KAI makes its own group for the pods of a Job without this annotation.
  if (trial.gang == "kai") annotations.set(kKaiSkip, "true");
}

std::string pod_group_of(const kube::Job& job) {
  return text_in(job.metadata.annotations, kPodGroupAnnotation);
}

Json build_pod_group(const kube::Job& job, const kube::Resource& resource) {
  // An elastic trial can begin with its minimum number of workers.
  std::int64_t members = workers_at_start(job);
  const std::int64_t least = number_in(job.metadata.annotations, kMinWorkersAnnotation);
  if (least != 0) members = least;
  const bool native = resource.group == kNative.group;
  Json spec =
      native ? Json::object({{"schedulingPolicy",
                              Json::object({{"gang", Json::object({{"minCount", members}})}})}})
             : Json::object({{"minMember", members}});
  const std::string queue = text_in(job.metadata.annotations, kPodGroupQueueAnnotation);
  if (!queue.empty()) spec.set("queue", queue);
  return kube::owned_object(resource, job.metadata.name, inherited_labels(job), kube::kJobs,
                            job.metadata, std::move(spec));
}

}  // namespace fettle::kubernetes
