// Workloads: Kueue's own objects, one or several for a Job, which explain why it is not admitted.
//
// The right to read them is optional, and the cluster may have no Kueue: then only the Job explains
// itself. A Workload can be given up before its Job: deactivated (by an administrator, after too
// many evictions, or over its maximum execution time), or finished because the Job could not be
// started. Kueue then never resumes the Job.
// Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/json.h"
#include "kube/objects/objects.h"
#include "kube/objects/resource.h"

namespace fettle::kubernetes {

inline constexpr kube::Resource kWorkloads{"kueue.x-k8s.io", "v1beta2", "workloads", "Workload"};
inline constexpr kube::Resource kOldWorkloads{"kueue.x-k8s.io", "v1beta1", "workloads", "Workload"};
// Label of Workloads: the uid of the Job that they admit.
inline constexpr const char* kWorkloadJobLabel = "kueue.x-k8s.io/job-uid";

struct WorkloadView {
  enum class State {
    kUnknown,   // not asked, or not allowed to
    kNoKueue,   // the cluster does not serve Workloads
    kMissing,   // Kueue has made no Workload for the Job
    kWaiting,   // for quota, or for another admission
    kInactive,  // deactivated: it waits for a person
    kFinished,  // all Workloads: the Job is not resumed any more
  };
  State state = State::kUnknown;
  std::string name;
  std::string message;  // Kueue's message; "" = it gives none
};

// `workloads`: all Workloads of one Job.
WorkloadView read_workloads(const std::vector<Json>& workloads);

// Describes why a Job that a queue has suspended waits.
struct QueueWait {
  WorkloadView workload;
  // The run has run before: its queue preempted it, after `step`.
  bool preempted = false;
  std::int64_t step = 0;
  // The message on the run's record: the earlier wait of its pods, or an earlier why_queued().
  std::string recorded;
};

// Says to people who has to do what. Keeps the earlier wait of the pods, before the queue took
// them.
std::string why_queued(const kube::Job& job, const QueueWait& wait);

// Whether it must be said at once, and not only after the Job has waited for a time.
bool is_urgent(const QueueWait& wait);

// Kueue's message about a Workload that it has deactivated, the way out, and the earlier wait of
// the pods.
std::string why_blocked(const kube::Job& job, const QueueWait& wait);

}  // namespace fettle::kubernetes
