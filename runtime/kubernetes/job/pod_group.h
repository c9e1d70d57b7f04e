// PodGroups: the workers of a trial as a group that a scheduler places all at once, or not at all
// (spec.trial.gang). Each scheduler has its own object, and its own way for a pod to name its
// group:
//
//   native        scheduling.k8s.io      pod.spec.schedulingGroup (Kubernetes 1.36, behind a gate)
//   coscheduling  scheduling.x-k8s.io    a label; the scheduler is whichever has the plugin
//   volcano       scheduling.volcano.sh  an annotation; scheduler volcano
//   kai           scheduling.run.ai      an annotation; scheduler kai-scheduler
//
// The group has the name of its Job, which owns it. The Job is made suspended and opened when the
// group is there, because some schedulers place pods of an unknown group one by one. Trials of one
// worker need no group; Volcano and KAI still schedule them and rank them in their queue. Pure;
// usable from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "kube/objects/objects.h"
#include "kube/objects/resource.h"

namespace fettle::kubernetes {

// Annotations of a Job whose pods are a group: the gang of its Study, and the queue of the group.
inline constexpr const char* kPodGroupAnnotation = "fettle.dev/pod-group";
inline constexpr const char* kPodGroupQueueAnnotation = "fettle.dev/pod-group-queue";

// Versions of the resource, newest first; empty: this gang has no group.
std::vector<kube::Resource> pod_group_resources(std::string_view gang);

// Lets the pods of `job` be scheduled as spec.trial.gang says: `pod_template` is its template,
// `grouped` says whether there is more than one pod.
void join_pod_group(const api::TrialTemplate& trial, const std::string& job, bool grouped,
                    Json& pod_template);

// Adds to the annotations of the Job itself.
void add_pod_group_annotations(const api::TrialTemplate& trial, Json& annotations);

// The gang of the Job's pod group; "" = none.
std::string pod_group_of(const kube::Job& job);

// Builds the group of `job` for `resource` (of pod_group_resources). Requires pod_group_of(job).
Json build_pod_group(const kube::Job& job, const kube::Resource& resource);

}  // namespace fettle::kubernetes
