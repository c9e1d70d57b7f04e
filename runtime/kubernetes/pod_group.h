// PodGroups: the workers of a trial as a group that a scheduler places all at once, or not at all
// (spec.trial.gang). Each scheduler has its own object, and its own way for a pod to say which
// group it is in:
//
//   native        scheduling.k8s.io      pod.spec.schedulingGroup (Kubernetes 1.36, behind a gate)
//   coscheduling  scheduling.x-k8s.io    a label; the scheduler is whichever has the plugin
//   volcano       scheduling.volcano.sh  an annotation; scheduler volcano
//   kai           scheduling.run.ai      an annotation; scheduler kai-scheduler
//
// The group has the name of its Job, which owns it. The Job is made suspended and opened when the
// group is there, because some schedulers place pods of a group they do not know one by one.
// Trials of one worker need no group; Volcano and KAI still schedule them and rank them in their
// queue. Pure; usable from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/study.h"
#include "base/json.h"
#include "kube/objects.h"
#include "kube/resource.h"

namespace fettle::kubernetes {

// Of a Job whose pods are a group: the gang of its Study, and the queue that the group is in.
inline constexpr const char* kPodGroupAnnotation = "fettle.dev/pod-group";
inline constexpr const char* kPodGroupQueueAnnotation = "fettle.dev/pod-group-queue";

// Versions of the resource, newest first; empty: this gang has no group.
std::vector<kube::Resource> pod_group_resources(std::string_view gang);

// Lets the pods of `job` be scheduled as spec.trial.gang says: `pod_template` is its template,
// `grouped` says whether there is more than one of them.
void join_pod_group(const api::TrialTemplate& trial, const std::string& job, bool grouped,
                    Json& pod_template);

// Of the Job's own metadata.
void add_pod_group_annotations(const api::TrialTemplate& trial, Json& annotations);

// The gang whose group the Job's pods are in; "" = none.
std::string pod_group_of(const kube::Job& job);

// The group of `job`, as `resource` (of pod_group_resources) has it. Requires pod_group_of(job).
Json build_pod_group(const kube::Job& job, const kube::Resource& resource);

}  // namespace fettle::kubernetes
