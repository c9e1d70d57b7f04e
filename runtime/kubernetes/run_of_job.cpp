#include "runtime/kubernetes/run_of_job.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "runtime/kubernetes/job_builder.h"
#include "runtime/kubernetes/pod_end.h"

namespace fettle::kubernetes {
namespace {

using api::Outcome;
using core::Run;
using core::RunState;

constexpr const char* kRankLabel = "batch.kubernetes.io/job-completion-index";

// Of labels or annotations; 0 where there is none.
std::int64_t number_in(const std::map<std::string, std::string>& labels, const char* label) {
  const auto found = labels.find(label);
  std::int64_t number = 0;
  if (found == labels.end()) return number;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  return number;
}

// Newest attempts first: a rank has a second pod once its first one was disrupted.
bool is_newer_pod(const PodPtr& a, const PodPtr& b) {
  return a->metadata.created_ms != b->metadata.created_ms
             ? a->metadata.created_ms > b->metadata.created_ms
             : a->metadata.name > b->metadata.name;
}

// The newest pod of every rank, by rank.
std::map<std::int64_t, PodPtr> newest_pods(const std::vector<PodPtr>& pods) {
  std::map<std::int64_t, PodPtr> newest;
  for (const PodPtr& pod : pods) {
    PodPtr& known = newest[rank_of(*pod)];
    if (known == nullptr || is_newer_pod(pod, known)) known = pod;
  }
  return newest;
}

class RunReader {
 public:
  explicit RunReader(const JobView& view)
      : view_(view), job_(view.job), container_(trial_container_of(view.job)) {}

  Run read() {
    run_.id = number_in(job_.metadata.labels, kRunLabel);
    run_.workers = job_.completions;
    run_.until_step = number_in(job_.metadata.annotations, kUntilStepAnnotation);
    const std::map<std::int64_t, PodPtr> pods = newest_pods(view_.pods);
    if (const auto first = pods.find(0); first != pods.end()) take_first(*first->second);
    for (const auto& [rank, pod] : pods) {
      if (ends_the_run(*pod) || is_given_up(*pod)) return std::move(run_);
    }
    if (all_succeeded(pods) || job_says_it_ended(pods)) return std::move(run_);
    wait_or_run(pods);
    return std::move(run_);
  }

 private:
  void take_first(const kube::Pod& pod);
  bool ends_the_run(const kube::Pod& pod);
  bool is_given_up(const kube::Pod& pod);
  std::int64_t overdue_ms(const kube::Pod& pod) const;
  bool is_queued() const { return job_.suspended && !view_.stop_asked; }
  bool all_succeeded(const std::map<std::int64_t, PodPtr>& pods);
  bool job_says_it_ended(const std::map<std::int64_t, PodPtr>& pods);
  void wait_or_run(const std::map<std::int64_t, PodPtr>& pods);
  std::string why_no_pods() const;
  void exit(Outcome outcome, std::string reason, std::int64_t at_ms) {
    run_.state = RunState::kExited;
    run_.outcome = outcome;
    run_.reason = std::move(reason);
    run_.ended_ms = at_ms != 0 ? at_ms : view_.now_ms;
  }

  const JobView& view_;
  const kube::Job& job_;
  const std::string container_;
  Run run_;
};

// Its uid is given only once it runs: before, there is nothing to tell its reports apart.
void RunReader::take_first(const kube::Pod& pod) {
  if (!is_running(pod, container_) && !has_ended(pod, container_)) return;
  run_.pod_uid = pod.metadata.uid;
  const kube::Container* container = trial_container_in(pod, container_);
  run_.started_ms = container == nullptr ? pod.started_ms : container->started_ms;
  // The node's clock may be wrong; the scheduler's is that of the control plane.
  const auto* scheduled = kube::find_condition(pod.conditions, "PodScheduled");
  if (run_.started_ms != 0 && scheduled != nullptr) {
    run_.started_ms = std::min(std::max(run_.started_ms, scheduled->since_ms), view_.now_ms);
  }
  if (container != nullptr && container->terminated) {
    run_.report = read_termination_message(*container);
    run_.exit_code = container->exit_code;
  }
}

bool RunReader::ends_the_run(const kube::Pod& pod) {
  const std::optional<PodEnd> end = end_of_pod(pod, container_, view_.stop_asked);
  if (!end || end->outcome == Outcome::kSucceeded || end->replaced) return false;
  if (is_queued() && pod.metadata.deleted_ms != 0) return false;
  const bool one_of_many = job_.completions > 1;
  const std::string who =
      one_of_many ? "worker " + std::to_string(rank_of(pod)) + ": " : std::string();
  const bool refused = was_refused(end->reason);
  if (refused && view_.refused_before >= kMostAdmissionErrors) {
    exit(Outcome::kFailed,
         who + end->reason + "; nodes refused its pod " + std::to_string(kMostAdmissionErrors + 1) +
             " times in a row: can they give what its template asks for?",
         end->at_ms);
    return true;
  }
  exit(end->outcome, who + end->reason, end->at_ms);
  if (rank_of(pod) == 0) run_.exit_code = end->exit_code;
  return true;
}

// How long ago the pod should have ended; 0 = it has ended, or still has time to.
std::int64_t RunReader::overdue_ms(const kube::Pod& pod) const {
  if (!is_ending(pod, container_)) return 0;
  // Its deadline is by the API server's clock; by our own it is at least as new as what we saw.
  const std::int64_t since_ms = std::max(pod.metadata.deleted_ms, view_.ending_ms);
  const std::int64_t over_ms = view_.now_ms - since_ms;
  return over_ms >= kOverdueMs ? over_ms : 0;
}

bool RunReader::is_given_up(const kube::Pod& pod) {
  if (overdue_ms(pod) < kLostMs) return false;
  if (view_.stop_asked) {
    exit(Outcome::kStopped, "stopped", 0);
  } else {
    exit(Outcome::kDisrupted,
         "its node " + pod.node + " is lost: the pod should have ended, and does not say so", 0);
  }
  return true;
}

bool RunReader::all_succeeded(const std::map<std::int64_t, PodPtr>& pods) {
  std::int64_t succeeded = 0;
  std::int64_t last_ms = 0;
  for (const auto& [rank, pod] : pods) {
    const std::optional<PodEnd> end = end_of_pod(*pod, container_, view_.stop_asked);
    if (!end || end->outcome != Outcome::kSucceeded || rank >= job_.completions) continue;
    ++succeeded;
    last_ms = std::max(last_ms, end->at_ms);
  }
  if (succeeded < job_.completions) return false;
  exit(Outcome::kSucceeded, "", last_ms);
  return true;
}

// For when the pods are gone, or too few to tell.
bool RunReader::job_says_it_ended(const std::map<std::int64_t, PodPtr>& pods) {
  if (const auto* complete = kube::find_condition(job_.conditions, "Complete")) {
    exit(Outcome::kSucceeded, "", complete->since_ms);
    return true;
  }
  if (const auto* failed = kube::find_condition(job_.conditions, "Failed")) {
    if (view_.stop_asked) {
      exit(Outcome::kStopped, "stopped", failed->since_ms);
    } else if (failed->reason == "DeadlineExceeded") {
      exit(Outcome::kFailed, "the Job was ended by its own deadline: " + failed->message,
           failed->since_ms);
    } else {
      exit(Outcome::kDisrupted, "its pod is gone, and with it how it ended: " + failed->message,
           failed->since_ms);
    }
    return true;
  }
  const bool going = job_.metadata.deleted_ms != 0;
  if (pods.empty() && (going || (view_.stop_asked && job_.suspended && job_.active == 0))) {
    exit(view_.stop_asked ? Outcome::kStopped : Outcome::kDisrupted,
         view_.stop_asked ? "stopped" : "the Job was deleted by somebody else", view_.now_ms);
    return true;
  }
  return false;
}

std::string RunReader::why_no_pods() const {
  if (is_queued()) {
    return "the Job is suspended: a queue such as Kueue starts it when it is its turn, or whoever "
           "suspended it";
  }
  if (job_.suspended) return "";
  if (view_.now_ms - job_.metadata.created_ms < kPodsPatienceMs) return "";
  return "no pod could be made yet; quota, limits or Pod Security of the namespace may forbid it: "
         "kubectl describe job -n " +
         job_.metadata.ns + " " + job_.metadata.name + " says which";
}

void RunReader::wait_or_run(const std::map<std::int64_t, PodPtr>& pods) {
  run_.queued = is_queued();
  if (pods.empty() || run_.queued) run_.reason = why_no_pods();
  std::int64_t running = 0;
  for (const auto& [rank, pod] : pods) {
    const std::optional<PodEnd> end = end_of_pod(*pod, container_, view_.stop_asked);
    const bool succeeded = end && end->outcome == Outcome::kSucceeded;
    const std::int64_t late_ms = overdue_ms(*pod);
    if ((is_running(*pod, container_) && late_ms == 0) || succeeded) ++running;
    const std::string waits = late_ms > 0            ? why_overdue(*pod)
                              : end && end->replaced ? end->reason
                                                     : why_waiting(*pod, container_, view_.now_ms);
    if (run_.reason.empty()) run_.reason = waits;
  }
  if (running < job_.completions || run_.queued) return;
  run_.state = RunState::kRunning;
  run_.reason.clear();
}

}  // namespace

Run run_of_job(const JobView& view) { return RunReader(view).read(); }

PodPtr first_pod(const std::vector<PodPtr>& pods) {
  PodPtr first;
  for (const PodPtr& pod : pods) {
    if (rank_of(*pod) == 0 && (first == nullptr || is_newer_pod(pod, first))) first = pod;
  }
  return first;
}

std::string trial_container_of(const kube::Job& job) {
  const auto found = job.metadata.annotations.find(kContainerAnnotation);
  return found == job.metadata.annotations.end() ? kTrainerContainer : found->second;
}

std::int64_t rank_of(const kube::Pod& pod) { return number_in(pod.metadata.labels, kRankLabel); }

}  // namespace fettle::kubernetes
