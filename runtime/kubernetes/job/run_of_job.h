// Derives the state of a run from its Job and pods.
//
// The end of the pods decides, not the Job's conditions, which follow a second later when all pods
// are gone. The Job controller replaces a disrupted pod (preempted, evicted, node lost), so the run
// becomes Pending again. A pod that a user deleted, or that disappeared with its result, was
// disrupted too, but fails the Job, which ends the run. The termination message is untrusted input:
// it counts only if it is one line of metrics, as on stdout, and it is bounded.
//
// A deleted pod that does not end is on an unresponsive node. After a timeout the run counts as
// disrupted. Its processes may still be running if the node only lost its network. The built-in
// trainer's checkpoints have a fence. Any other program that mounts a claim may write to it beside
// the next run: its run waits until the pod object is gone. Kubernetes removes it once the node is
// back, or is deleted, or has the taint node.kubernetes.io/out-of-service; or a user removes it by
// force.
//
// A running Job that is suspended from outside waits in a queue (Kueue). The end of its pods is not
// the end of the run, unless the queue has finished its Workload: then it never resumes the Job.
//
// Workers with a rank at or above the Job's completions are being removed and are ignored. A run of
// several workers starts when all of them run; after that an elastic run runs as long as at least
// its minimum does.
//
// Normal waiting (pod created, scheduled, image pulled) has no reason, so nothing is written for
// it. Waiting that a person must end has a reason.
// Pure; usable from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plan.h"
#include "kube/objects/objects.h"
#include "runtime/kubernetes/job/workload.h"

namespace fettle::kubernetes {

using JobPtr = std::shared_ptr<const kube::Job>;
using PodPtr = std::shared_ptr<const kube::Pod>;

struct JobView {
  const kube::Job& job;
  const std::vector<PodPtr>& pods;  // of this Job, in any order
  bool stop_asked = false;          // the operator asked this run to stop
  std::int64_t now_ms = 0;
  std::int64_t ending_ms = 0;  // when a terminating pod was first seen, operator's clock; 0 = none
  // The time since which the Job has been seen not suspended, operator's clock; 0 = it is
  // suspended, or unknown.
  std::int64_t resumed_ms = 0;
  int refused_before = 0;      // consecutive runs before this one whose pods a node refused
  std::string first_uid = {};  // recorded pod of rank 0; "" = the run has not run yet
  // How long a replaced worker may wait for a node before the run ends, since the other workers
  // wait for it and hold their GPUs. 0 = no limit.
  std::int64_t gang_timeout_ms = 0;
  bool fenced = true;  // its program writes no checkpoint once another run does
  // How long a pod that has a node may take to start. 0 = no limit.
  std::int64_t start_timeout_ms = 0;
  QueueWait queue = {};  // while a queue has suspended the Job
};

// A Job without pods for longer than this cannot create them: quota, limits, Pod Security.
inline constexpr std::int64_t kPodsPatienceMs = 5'000;
// How long after its deadline a terminating pod is reported as overdue, and as lost.
inline constexpr std::int64_t kOverdueMs = 30'000;
inline constexpr std::int64_t kLostMs = 180'000;
// Consecutive runs that nodes may refuse (UnexpectedAdmissionError) before the template is at
// fault.
inline constexpr int kMaxAdmissionErrors = 2;

core::Run run_of_job(const JobView& view);

// Whether a gang that was complete, and has not run yet, lost a worker for which no node was found
// in time, so that the others hold their nodes for nothing.
bool is_incomplete_again(const JobView& view);

// Why a run that has not begun holds nodes for nothing: one of its pods has had a node for the
// start timeout and has not started (a missing image, Secret or volume). "" = it holds none for
// nothing. A queue has its own limit.
std::string why_not_started(const JobView& view);

// The number of workers at the Job's creation.
std::int64_t workers_at_start(const kube::Job& job);
// Whether the run continues when workers join or leave: the built-in trainer with min < max.
bool is_elastic(const kube::Job& job);
// The newest pod of rank 0; null if it has none.
PodPtr rank_zero_pod(const std::vector<PodPtr>& pods);
// The name of the trial's container.
std::string trial_container_of(const kube::Job& job);
// The trial's container in `pod`; null while the kubelet has not reported its status.
const kube::Container* trial_container_in(const kube::Pod& pod, const std::string& name);
// Whether only the removal of the pod object shows that it writes no more (JobView::fenced).
bool must_be_gone(const kube::Pod& pod, bool fenced);
// Rank of a pod, 0 ... workers - 1.
std::int64_t rank_of(const kube::Pod& pod);
// Whether the trial's container runs.
bool is_running(const kube::Pod& pod, const std::string& container);
// Whether the pod is terminating: deleted, and its trial has not ended.
bool is_ending(const kube::Pod& pod, const std::string& container);
// Whether a run with this reason was refused by the node of its pod.
bool was_refused(const std::string& reason);
// Whether the trial's container has ended, so that it prints no more.
bool has_ended(const kube::Pod& pod, const std::string& container);

}  // namespace fettle::kubernetes
