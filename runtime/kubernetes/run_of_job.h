// What a Job and its pods say of a run.
//
// What decides is the pod's end, not the Job's conditions: those come a second later, once all pods
// are gone. A disrupted pod (preempted, evicted, its node lost) is replaced by the Job controller,
// so the run goes on as Pending. A pod that somebody deleted, or that is gone with its result, was
// disrupted too, but the Job gives up: that ends the run. The termination message is a stranger's:
// it counts only if it is one line of metrics as on the output, and is bounded.
//
// A pod that is deleted and does not end has a node that does not answer. It is waited for, and
// then given up: the run was disrupted. Whether its processes still run on a node that only lost
// its network cannot be known from here; a ReadWriteOnce volume keeps them apart from their
// successors, a shared one does not.
//
// A Job that somebody else suspends after it ran waits for its queue (Kueue): that its pods were
// ended is no end of the run.
//
// Workers above the Job's completions are on their way out and count for nothing. A run of several
// begins to run when all its workers do; then an elastic one runs as long as its least number does.
//
// Ordinary waiting (a pod is made, scheduled, its image pulled) has no reason, so that nothing is
// written down for it; waiting that somebody must do something about has one.
// Pure; usable from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plan.h"
#include "kube/objects.h"

namespace fettle::kubernetes {

using JobPtr = std::shared_ptr<const kube::Job>;
using PodPtr = std::shared_ptr<const kube::Pod>;

struct JobView {
  const kube::Job& job;
  const std::vector<PodPtr>& pods;  // of this Job, in any order
  bool stop_asked = false;          // we asked this run to stop
  std::int64_t now_ms = 0;
  std::int64_t ending_ms = 0;  // a pod was first seen on its way out, our own clock; 0 = none was
  int refused_before = 0;      // runs right before this one whose pods a node refused
  std::string first_uid = {};  // pod of rank 0 as recorded: the run has run; "" = it has not
  // A worker that is made again gets a node within so long, or the run ends: the others wait for it
  // and hold their GPUs. 0 = however long that takes.
  std::int64_t gang_timeout_ms = 0;
};

// A Job without pods for longer than this cannot make them: quota, limits, Pod Security.
inline constexpr std::int64_t kPodsPatienceMs = 5'000;
// A pod that should have ended so long ago is waited for, and so long ago, given up.
inline constexpr std::int64_t kOverdueMs = 30'000;
inline constexpr std::int64_t kLostMs = 180'000;
// Runs in a row that nodes may refuse (UnexpectedAdmissionError) before it is the template's fault.
inline constexpr int kMostAdmissionErrors = 2;
// Longer termination messages are the kubelet's mistake; no metric is read from them.
inline constexpr std::size_t kLongestTerminationMessage = 4096;

core::Run run_of_job(const JobView& view);

// With how many workers the Job was made.
std::int64_t workers_at_start(const kube::Job& job);
// Whether workers may come and go while it runs.
bool is_elastic(const kube::Job& job);
// The pod of rank 0, newest attempt; null where there is none.
PodPtr first_pod(const std::vector<PodPtr>& pods);
// The name of the container that is the trial.
std::string trial_container_of(const kube::Job& job);
// The trial's container in `pod`; null while the kubelet has not said anything of it.
const kube::Container* trial_container_in(const kube::Pod& pod, const std::string& name);
// Rank of a pod, 0 ... workers - 1.
std::int64_t rank_of(const kube::Pod& pod);
// Whether the pod's trial runs now.
bool is_running(const kube::Pod& pod, const std::string& container);
// Whether a pod was deleted and its trial has not ended.
bool is_ending(const kube::Pod& pod, const std::string& container);
// Whether a run with this record or reason was refused by the node of its pod.
bool was_refused(const std::string& reason);
// Whether the pod's trial will print no more.
bool has_ended(const kube::Pod& pod, const std::string& container);

}  // namespace fettle::kubernetes
