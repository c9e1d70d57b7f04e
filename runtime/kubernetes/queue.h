// Queues: a trial's Job that Kueue admits, where the Study names one of its queues
// (spec.trial.queue). The rules that this follows are in docs/decisions/0044.
//
// The Job carries the queue's name as a label and is made suspended. From then on Kueue alone
// suspends and resumes it; whatever Fettle wrote there would be undone. A Job may have the label
// though its Study names no queue: where a namespace has a default queue, Kueue's webhook adds it.
// So the Job says whether it is managed, not the Study.
// Pure; usable from any thread.
#pragma once

#include <string>

#include "api/study.h"
#include "base/json.h"
#include "kube/objects.h"

namespace fettle::kubernetes {

// Of Jobs; Kueue's names.
inline constexpr const char* kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr const char* kQueuePriorityLabel = "kueue.x-k8s.io/priority-class";
// Its number of pods may change while it runs; Kueue would otherwise suspend it.
inline constexpr const char* kElasticJobAnnotation = "kueue.x-k8s.io/elastic-job";
// Of Kueue's Workload: the uid of the Job that it admits.
inline constexpr const char* kWorkloadJobLabel = "kueue.x-k8s.io/job-uid";

// Whether Kueue is to admit the Study's trials.
bool names_kueue(const api::TrialTemplate& trial);

// Puts the Job of a Study that names_kueue() into its queue.
void join_queue(const api::TrialTemplate& trial, Json& job);

// The queue of Kueue that the Job is in; "" = none.
std::string queue_of(const kube::Job& job);

// What a Job waits for that its queue has not admitted, and who says why.
std::string why_queued(const kube::Job& job);

}  // namespace fettle::kubernetes
