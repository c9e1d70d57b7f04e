// WorkloadCache: Kueue's answers about the Jobs that it has suspended (workload.h).
//
// Kueue is asked about a Job that has waited for a few seconds, and then from time to time. Only a
// cache. Thread-safe. Client and clock must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "api/trial/trial.h"
#include "base/result.h"
#include "core/control/clock.h"
#include "kube/client/client.h"
#include "kube/objects/objects.h"
#include "runtime/kubernetes/job/workload.h"

namespace fettle::kubernetes {

class WorkloadCache {
 public:
  WorkloadCache(kube::Client& client, control::Clock& clock) : client_(client), clock_(clock) {}

  // Why the Job waits, if a queue has suspended it. `record`: its run's; null if it has none yet.
  QueueWait wait_of(const kube::Job& job, const api::Trial& trial, const api::RunRecord* record);
  // kUnavailable: Kueue has deactivated the Job's Workload, and a person must act. From the last
  // answer; asks nothing.
  Status check_active(const kube::Job& job, const api::RunRecord* record) const;
  // Call when the Job is gone.
  void forget(const std::string& uid);

 private:
  // Kueue's last known answer about a Job, and when it is asked again.
  struct Answer {
    WorkloadView view;
    std::int64_t ask_ms = 0;
    bool finished = false;  // in the last answer; it counts if the next one agrees
  };
  WorkloadView view_of(const kube::Job& job);
  Result<WorkloadView> ask(const kube::Job& job);

  kube::Client& client_;
  control::Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Answer> answers_;  // by the Job's uid; guarded by mutex_
};

}  // namespace fettle::kubernetes
