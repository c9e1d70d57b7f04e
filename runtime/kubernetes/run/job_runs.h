// JobRuns: control::Runs as Jobs of a Kubernetes cluster.
//
// A run is the Job "<trial>-r<run>" (job_builder.h), owned by its Trial, and is observed through
// caches of Jobs and pods (run_of_job.h). All state is in the cluster. The memory of this
// object's parts is only a cache and is rebuilt after a restart; the state of a gang is on its Job
// (gang.h).
//
// Thread-safe, as each of its parts is. Client, caches, Store and clock must outlive it. Create it
// before the informers start and destroy it after they have stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/control/clock.h"
#include "core/control/runs.h"
#include "core/control/store.h"
#include "kube/client/client.h"
#include "kube/objects/objects.h"
#include "kube/watch/cache.h"
#include "runtime/kubernetes/log/log_metrics.h"
#include "runtime/kubernetes/pod/job_options.h"
#include "runtime/kubernetes/run/elastic_limits.h"
#include "runtime/kubernetes/run/gang_scheduler.h"
#include "runtime/kubernetes/run/job_client.h"
#include "runtime/kubernetes/run/pending_runs.h"
#include "runtime/kubernetes/run/pod_index.h"
#include "runtime/kubernetes/run/prerequisites.h"
#include "runtime/kubernetes/run/run_observer.h"

namespace fettle::kubernetes {

class JobRuns final : public control::Runs {
 public:
  JobRuns(kube::Client& client, kube::Cache<kube::Job>& jobs, kube::Cache<kube::Pod>& pods,
          control::Store& store, control::Clock& clock, JobOptions options,
          const LogMetricsOptions& logs = {});

  // Dry-runs the Job and its pod (template_check.h), and records its warnings as events.
  Status check(const api::Study& study) override;
  // kInvalid: the Study can never run as it is written, by our own checks. A refusal of the server,
  // which accepted the template in check(), is kUnavailable or, if the request is forbidden now,
  // success with a run that is Pending and is retried. It is Pending, too, while pods of the
  // trial's earlier runs are alive, because two runs must not write checkpoints to one directory.
  // kAlreadyExists: another object has the Job's name.
  Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) override;
  Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) override;
  // Suspends the Job, which ends its pods. A Job that a queue would resume gets a deadline that has
  // passed, or is deleted if it is suspended.
  Status stop(const api::Trial& trial, std::int64_t run) override;
  Status remove(const api::Trial& trial, std::int64_t run) override;
  Result<std::vector<core::Run>> observe(const api::Trial& trial) override;
  Status check_progress(const api::Trial& trial) override;
  // Ends Jobs of a trial that was deleted without them (kubectl delete --cascade=orphan): nobody
  // else would stop them. Jobs with our labels but another owner or name are left alone.
  Status remove_orphans(const std::string& ns, const std::string& trial) override;
  core::Capacity capacity(const api::Study& study) override;
  void watch(std::function<void(const std::string& trial)> listener) override;

  GangLine gang_line() const { return gangs_.line(); }
  // Joins the threads that read logs: afterwards only callers of this object use the client.
  void stop_reading() { logs_.stop(); }
  // Reads the next piece of the next log, for a caller without reader threads; false if none is
  // due.
  bool read_next_log() { return logs_.step(); }

 private:
  Result<core::Run> observe_job(const kube::Job& job, const api::Trial& trial,
                                const Result<api::Study>& study);
  std::string advance(const JobView& view, const api::Trial& trial, const api::Study* study,
                      const core::Run& run);
  Status return_unstarted(const JobView& view);
  Status ensure_resource_claim(const api::Study& study);
  void job_changed(const JobPtr& before, const JobPtr& after);
  void pod_changed(const PodPtr& before, const PodPtr& after);
  void notify(const std::string& trial);

  kube::Client& client_;
  kube::Cache<kube::Job>& jobs_;
  kube::Cache<kube::Pod>& pods_;
  control::Store& store_;
  control::Clock& clock_;
  const JobOptions options_;
  PodIndex pod_index_;
  PendingRuns pending_;
  JobClient job_client_;
  Prerequisites prerequisites_;
  GangScheduler gangs_;
  ElasticLimits limits_;
  RunObserver observer_;
  std::mutex mutex_;
  std::function<void(const std::string&)> listener_;  // guarded by mutex_
  LogMetrics logs_;                                   // last: its threads call notify()
};

}  // namespace fettle::kubernetes
