#include "runtime/kubernetes/job/workload.h"

#include <algorithm>

#include "kube/objects/json_path.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/queue.h"

namespace fettle::kubernetes {
namespace {

using kube::text_at;
using State = WorkloadView::State;

// Separates the wait from the earlier wait of the pods.
constexpr std::string_view kBefore = "; before that: ";
// The beginning of why_queued().
constexpr std::string_view kQueueSays = "queue ";
// The message for a Job that Kueue suspended before it was in a queue (run_of_job.cpp).
constexpr std::string_view kSuspended = "the Job is suspended";

const Json* condition_of(const Json& workload, std::string_view type) {
  for (const Json& condition : kube::array_at(workload, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

bool is_true(const Json& workload, std::string_view type) {
  const Json* condition = condition_of(workload, type);
  return condition != nullptr && text_at(*condition, {"status"}) == "True";
}

std::string message_of(const Json& workload, std::string_view type) {
  const Json* condition = condition_of(workload, type);
  return condition == nullptr ? "" : text_at(*condition, {"message"});
}

bool is_inactive(const Json& workload) {
  const Json* active = kube::value_at(workload, {"spec", "active"});
  return active != nullptr && active->is_boolean() && !active->as_boolean();
}

// Its last eviction explains why it waits, until it is admitted again.
WorkloadView read_open(const Json& workload) {
  WorkloadView view{State::kWaiting, text_at(workload, {"metadata", "name"}), ""};
  if (is_inactive(workload)) view.state = State::kInactive;
  if (is_true(workload, "Evicted")) view.message = message_of(workload, "Evicted");
  const bool pending = !is_true(workload, "QuotaReserved");
  const std::string reserved = message_of(workload, "QuotaReserved");
  if (view.state == State::kWaiting && pending && !reserved.empty()) view.message = reserved;
  return view;
}

std::string before_the_queue(const std::string& recorded) {
  const std::size_t at = recorded.find(kBefore);
  if (at != std::string::npos) return recorded.substr(at + kBefore.size());
  return recorded.starts_with(kQueueSays) || recorded.starts_with(kSuspended) ? "" : recorded;
}

std::string before_clause(const QueueWait& wait) {
  const std::string before = before_the_queue(wait.recorded);
  return before.empty() ? "" : std::string(kBefore) + before;
}

std::string why_inactive(const kube::Job& job, const WorkloadView& workload) {
  const std::string why = workload.message.empty() ? "" : " (" + workload.message + ")";
  return "Kueue has deactivated its Workload" + why +
         ": when the cause is gone, kubectl delete workloads.kueue.x-k8s.io " + workload.name +
         " -n " + job.metadata.ns +
         " queues it again, as spec.active: true does where a person has deactivated it";
}

std::string or_class(const kube::Job& job, const char* before) {
  const std::string priority = kube::text_in(job.metadata.labels, kQueuePriorityLabel);
  return priority.empty() ? "" : std::string(before) + "WorkloadPriorityClass " + priority;
}

std::string command(const kube::Job& job) {
  return "kubectl describe workloads.kueue.x-k8s.io -n " + job.metadata.ns + " -l " +
         kWorkloadJobLabel + "=" + job.metadata.uid + " says why";
}

std::string details(const kube::Job& job, const WorkloadView& workload) {
  switch (workload.state) {
    case State::kNoKueue:
      return "this cluster has no Kueue";
    case State::kMissing:
      return "Kueue has made no Workload for it" + or_class(job, "; is there a ");
    case State::kWaiting:
    case State::kFinished:
      return workload.message.empty() ? command(job) : workload.message;
    case State::kInactive:
      return why_inactive(job, workload);
    case State::kUnknown:
      break;
  }
  return command(job) + "; without such a queue" + or_class(job, ", without ") +
         " or without Kueue it waits for ever";
}

}  // namespace

WorkloadView read_workloads(const std::vector<Json>& workloads) {
  WorkloadView finished{State::kMissing, "", ""};
  // An open Workload decides, because it may still resume the Job.
  for (const Json& workload : workloads) {
    if (!is_true(workload, "Finished")) return read_open(workload);
    finished = {State::kFinished, text_at(workload, {"metadata", "name"}),
                message_of(workload, "Finished")};
  }
  return finished;
}

std::string why_blocked(const kube::Job& job, const QueueWait& wait) {
  return why_inactive(job, wait.workload) + before_clause(wait);
}

std::string why_queued(const kube::Job& job, const QueueWait& wait) {
  const std::string queue = std::string(kQueueSays) + queue_of(job);
  const std::string what = wait.preempted
                               ? queue + " took its nodes back at step " +
                                     std::to_string(wait.step) + ", and has not admitted it again"
                               : queue + " has not admitted it";
  return what + ": " + details(job, wait.workload) + before_clause(wait);
}

bool is_urgent(const QueueWait& wait) {
  return wait.preempted || wait.workload.state == State::kInactive ||
         !before_the_queue(wait.recorded).empty();
}

}  // namespace fettle::kubernetes
