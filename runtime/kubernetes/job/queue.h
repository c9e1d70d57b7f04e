// Queues: a trial's Job under the control of Kueue, if the Study names one of Kueue's queues
// (spec.trial.queue). The underlying rules are in docs/decisions/0044 and 0057.
//
// The Job carries the queue's name as a label and is made suspended. From then on Kueue alone
// suspends and resumes it; it would undo any write of Fettle. A Job may have the label although its
// Study names no queue: if a namespace has a default queue, Kueue's webhook adds it. So the Job,
// not the Study, says whether it is managed.
// Pure; usable from any thread.
#pragma once

#include <optional>
#include <string>

#include "api/study/study.h"
#include "base/json.h"
#include "kube/objects/objects.h"

namespace fettle::kubernetes {

// Kueue's labels of Jobs.
inline constexpr const char* kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr const char* kQueuePriorityLabel = "kueue.x-k8s.io/priority-class";
// The number of pods may change while the Job runs, if Kueue's gate ElasticJobsViaWorkloadSlices is
// on.
inline constexpr const char* kElasticJobAnnotation = "kueue.x-k8s.io/elastic-job";
// The scheduling gate that Kueue's webhook puts into the template of such a Job, if that gate is
// on.
inline constexpr const char* kElasticJobGate = "kueue.x-k8s.io/elastic-job";
// The queue and priority class that Fettle last gave the Job, "team/low". Labels that were changed
// by hand since are left alone until the Study changes.
inline constexpr const char* kQueuedAsAnnotation = "fettle.dev/queued-as";

// Whether Kueue admits the Study's trials.
bool names_kueue(const api::TrialTemplate& trial);

// Puts the Job of a Study that names_kueue() into its queue.
void join_queue(const api::TrialTemplate& trial, Json& job);

// The queue of Kueue that the Job is in; "" = none.
std::string queue_of(const kube::Job& job);

bool is_suspended_by_queue(const kube::Job& job);

// Whether more workers of the Job can begin while it runs. A Job in a queue whose Kueue does not
// slice Workloads would be preempted.
bool may_grow(const kube::Job& job);

// The metadata to merge into a Job whose Study has changed its queue or priority class. Absent:
// nothing changes. Kueue allows another queue only while the Job is suspended.
std::optional<Json> moved_queue(const api::TrialTemplate& trial, const kube::Job& job);

}  // namespace fettle::kubernetes
