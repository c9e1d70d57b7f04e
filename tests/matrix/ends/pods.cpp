// The ending in a Job, its pods and a log (runtime/kubernetes/job/run_of_job.h, run_output.h).
#include "api/trial/report.h"
#include "runtime/kubernetes/job/job_builder.h"
#include "runtime/kubernetes/job/run_of_job.h"
#include "runtime/kubernetes/log/run_output.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/pod/service.h"
#include "tests/matrix/ends/ending.h"

namespace fettle::ends {
namespace {

using kubernetes::JobView;
using kubernetes::PodPtr;

int code_of(Exit exit) {
  switch (exit) {
    case Exit::kZero:
      return 0;
    case Exit::kOne:
      return 1;
    case Exit::kMissesOthers:
      return 75;
    case Exit::kSigterm:
      return 143;
    case Exit::kSigkill:
    case Exit::kMemory:
      return 137;
    case Exit::kCrash:
      return 139;
  }
  return 1;
}

// The built-in trainer leaves its final result in the termination message, as one line.
std::string last_words(const Ending& ending) {
  if (!ending.trainer) return "";
  if (ending.said == Said::kFinal) return R"({"step": 3, "loss": 0.25, "final": true})";
  if (ending.said == Said::kFinalBelow) return R"({"step": 2, "loss": 0.5, "final": true})";
  return "";
}

kube::Pod pod_of(std::int64_t rank) {
  kube::Pod pod;
  pod.metadata.name = "digits-0-r0-" + std::to_string(rank) + "-x";
  pod.metadata.ns = "team";
  pod.metadata.uid = rank == 0 ? kUid : "pod-1";
  pod.metadata.created_ms = kStartedMs - 1'000;
  pod.metadata.labels["batch.kubernetes.io/job-completion-index"] = std::to_string(rank);
  pod.node = "n1";
  return pod;
}

void end_container(kube::Pod& pod, const Ending& ending, Exit exit) {
  kube::Container container;
  container.name = "trainer";
  container.terminated = true;
  container.exit_code = code_of(exit);
  container.terminated_reason = exit == Exit::kMemory ? "OOMKilled" : "Error";
  container.termination_message = last_words(ending);
  container.started_ms = kStartedMs;
  container.finished_ms = kEndedMs;
  pod.phase = exit == Exit::kZero ? "Succeeded" : "Failed";
  pod.containers = {container};
}

kube::Pod first_pod(const Ending& ending) {
  kube::Pod pod = pod_of(0);
  if (!ending.trainer) pod.claims = {"shared"};
  if (ending.fate == Fate::kLost) {
    kube::Container container;
    container.name = "trainer";
    container.running = true;
    container.started_ms = kStartedMs;
    pod.phase = "Running";
    pod.containers = {container};
    pod.metadata.deleted_ms = kNowMs - 2 * kubernetes::kLostMs;
    return pod;
  }
  end_container(pod, ending, ending.exit);
  if (ending.fate == Fate::kMoved) {
    pod.conditions.push_back({"DisruptionTarget", "EvictionByEvictionAPI", "", kEndedMs - 1'000});
  }
  const bool deleted = ending.fate == Fate::kDeleted || ending.fate == Fate::kQueue;
  if (deleted || ending.stop != Stop::kNone) {
    pod.metadata.deleted_ms = kEndedMs + 29'000;
    pod.doomed_ms = kEndedMs - 1'000;
  }
  return pod;
}

kube::Job job_of(const Ending& ending, bool cured) {
  kube::Job job;
  job.metadata.name = "digits-0-r0";
  job.metadata.ns = "team";
  job.metadata.created_ms = kStartedMs - 2'000;
  job.metadata.labels[kubernetes::kRunLabel] = "0";
  job.completions = ending.fate == Fate::kPeer ? 2 : 1;
  if (ending.fate == Fate::kPeer) {
    job.metadata.annotations[kubernetes::kServiceAnnotation] = "w-digits-uid";
    job.metadata.annotations[kubernetes::kWorkersAnnotation] = "2";
  }
  job.suspended = ending.stop != Stop::kNone || ending.fate == Fate::kQueue;
  if (ending.fate == Fate::kQueue) job.metadata.labels["kueue.x-k8s.io/queue-name"] = "team";
  const bool is_alive = ending.fate == Fate::kLost && !cured;
  if (is_alive) return job;
  const bool well = ending.exit == Exit::kZero && ending.fate != Fate::kLost;
  job.conditions.push_back({well ? "Complete" : "Failed", "", "by its pods", kEndedMs});
  return job;
}

std::vector<PodPtr> pods_of(const Ending& ending, bool cured) {
  std::vector<PodPtr> pods;
  const bool removed = ending.fate == Fate::kLost && cured;
  if (ending.pod == Pod::kThere && !removed) {
    pods.push_back(std::make_shared<kube::Pod>(first_pod(ending)));
  }
  if (ending.fate == Fate::kPeer) {
    kube::Pod peer = pod_of(1);
    end_container(peer, {}, Exit::kSigterm);
    peer.conditions.push_back({"DisruptionTarget", "PreemptionByScheduler", "", kEndedMs - 5'000});
    pods.push_back(std::make_shared<kube::Pod>(peer));
  }
  return pods;
}

// Returns the log reader's knowledge of the pod of rank 0.
kubernetes::LogReading reading_of(const Ending& ending, bool cured) {
  kubernetes::LogReading reading;
  const bool read = ending.log == Log::kRead || (ending.log == Log::kWaits && cured);
  reading.report = read ? report_of(ending.said) : recorded_of(ending.said);
  reading.read_ms = kEndedMs;
  // If the end of a pod was not seen, its log was read only partly.
  reading.complete = ending.log == Log::kGivenUp || (read && ending.fate != Fate::kLost);
  if (!read) reading.read_error = "its log could not be read: 502";
  return reading;
}

}  // namespace

core::Run pod_run(const Ending& ending, bool cured) {
  const kube::Job job = job_of(ending, cured);
  const std::vector<PodPtr> pods = pods_of(ending, cured);
  JobView view{job, pods, ending.stop != Stop::kNone, kNowMs};
  view.first_uid = kUid;
  view.fenced = ending.trainer;
  core::Run run = kubernetes::run_of_job(view);
  if (ending.trainer) {
    // It has reported by itself, except the part that only its termination message has.
    if (!run.report && ending.said == Said::kAtRung) run.report = report_of(ending.said);
    return run;
  }
  const PodPtr first = kubernetes::rank_zero_pod(pods);
  const kubernetes::LogReading reading = reading_of(ending, cured);
  const bool ended = first != nullptr && kubernetes::has_ended(*first, "trainer");
  kubernetes::add_output({reading, first != nullptr, first == nullptr || ended, view.stop_asked},
                         run);
  return run;
}

}  // namespace fettle::ends
