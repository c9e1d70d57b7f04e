// RunObserver: reads the state of a run from its Job and pods (run_of_job.h), with what only the
// operator can know: since when it has observed each fact.
//
// Thread-safe. Its memory is only a cache. All that it is given must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api/trial/trial.h"
#include "base/result.h"
#include "core/control/clock.h"
#include "core/plan.h"
#include "kube/client/client.h"
#include "kube/objects/objects.h"
#include "kube/watch/cache.h"
#include "runtime/kubernetes/job/run_clock.h"
#include "runtime/kubernetes/job/run_of_job.h"
#include "runtime/kubernetes/pod/job_options.h"
#include "runtime/kubernetes/run/workload_cache.h"

namespace fettle::kubernetes {

class RunObserver {
 public:
  RunObserver(kube::Client& client, const kube::Cache<kube::Pod>& pods, control::Clock& clock,
              const JobOptions& options)
      : client_(client),
        pods_(pods),
        clock_(clock),
        gang_timeout_ms_(options.gang_timeout_ms),
        start_timeout_ms_(options.start_timeout_ms),
        workloads_(client, clock) {}

  // The pods of a Job.
  Result<std::vector<PodPtr>> pods_of(const kube::Job& job);
  // `pods` and `job` must outlive the view. `fenced`: as in JobView.
  JobView view_of(const kube::Job& job, const api::Trial& trial, const std::vector<PodPtr>& pods,
                  bool fenced);
  core::Run read(JobView view, const api::Trial& trial);

  // Whether a pod of the Job is alive.
  bool has_live_pods(const kube::Job& job, bool fenced) const;
  // kUnavailable: its queue has given the run up, and a person must act.
  Status check_active(const kube::Job& job, const api::Trial& trial) const;
  // Notes whether the writes for the run fail now. Returns since when they have failed in every
  // reconcile; 0 = they do not.
  std::int64_t note_failing(const kube::Job& job, bool failing);
  // Call when the Job is gone.
  void forget(const std::string& uid);

 private:
  kube::Client& client_;
  const kube::Cache<kube::Pod>& pods_;
  control::Clock& clock_;
  const std::int64_t gang_timeout_ms_;
  const std::int64_t start_timeout_ms_;
  WorkloadCache workloads_;
  std::mutex mutex_;
  std::map<std::string, RunClock> run_clocks_;  // by the Job's uid; guarded by mutex_
};

}  // namespace fettle::kubernetes
