// JobRuns: control::Runs as Jobs of a Kubernetes cluster.
//
// A run is the Job "<trial>-r<run>" (job_builder.h), owned by its Trial, and is observed through
// caches of Jobs and pods (run_of_job.h). Writes go into the caches at once. Every write is
// idempotent: names are deterministic, patches and deletions carry the uid as a precondition.
// All state is in the cluster. The memory of this object (refusals, cursors of logs, known Services
// and claims, observed times of runs) is only a cache and is rebuilt after a restart; the state of
// a gang is on its Job (gang.h).
//
// Thread-safe. Client, caches, Store and clock must outlive it. Create it before the informers
// start and destroy it after they have stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/clock.h"
#include "control/runs.h"
#include "control/store.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/objects.h"
#include "runtime/kubernetes/gpu/placement.h"
#include "runtime/kubernetes/job/gang.h"
#include "runtime/kubernetes/job/gang_turns.h"
#include "runtime/kubernetes/job/job_builder.h"
#include "runtime/kubernetes/job/refusals.h"
#include "runtime/kubernetes/job/run_clock.h"
#include "runtime/kubernetes/job/workload.h"
#include "runtime/kubernetes/log/log_metrics.h"

namespace fettle::kubernetes {

class JobRuns final : public control::Runs {
 public:
  JobRuns(kube::Client& client, kube::Cache<kube::Job>& jobs, kube::Cache<kube::Pod>& pods,
          control::Store& store, control::Clock& clock, JobOptions options,
          const LogMetricsOptions& logs = {});
  ~JobRuns() override;

  // Dry-runs the Job and its pod (template_check.h). Warns, by an event, of a volume that only one
  // node can mount at a time.
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
  Status remove_orphans(const std::string& ns, const std::string& trial) override;
  core::Capacity capacity(const api::Study& study) override;
  void watch(std::function<void(const std::string& trial)> listener) override;
  // The length of the line of gangs that wait for their turn (gang.h), and how long the first of
  // them has waited.
  struct GangLine {
    std::int64_t length = 0;
    std::int64_t longest_ms = 0;
  };
  GangLine gang_line();
  // Joins the threads that read logs: afterwards only callers of this object use the client.
  void stop_reading();
  // Reads the next piece of the next log, for a caller without reader threads; false if none is
  // due.
  bool read_next_log() { return logs_.step(); }

 private:
  // Kueue's last known answer about a Job, and when it is asked again.
  struct SeenWorkload {
    WorkloadView view;
    std::int64_t ask_ms = 0;
    bool finished = false;  // in the last answer; it counts if the next one agrees
  };

  JobPtr find_job(const api::Trial& trial, std::int64_t run) const;
  void add_waiting_elsewhere(const api::Study& study, core::Capacity& capacity);
  bool competes(const api::Study& study, const kube::Pod& pod);
  std::string domain_of_study(const api::Study& study) const;
  void index_pod(const api::Metadata& metadata, const std::string& trial, bool is_refused,
                 bool is_gone);
  std::vector<PodPtr> pods_of_trial(const api::Trial& trial) const;
  Status create(const Json& job, const api::Trial& trial, std::int64_t run);
  Status adopt(const api::Trial& trial, const std::string& name);
  Status cache_job(const Json& job);
  Status patch_spec(const kube::Job& job, Json spec);
  Status prepare(const api::Study& study, const std::optional<GpuPlacement>& gpus);
  Status ensure_service(const api::Study& study);
  Status ensure_own_service(const kube::Job& job);
  Status ensure_service_of(const kube::Job& job, const api::Study& study);
  Status ensure_pod_group(const kube::Job& job);
  // Whether the objects that its workers need beside the Job are known to exist.
  bool is_prepared(const kube::Job& job);
  Status ensure_claim(const api::Study& study);
  Result<bool> ensure(const kube::Resource& resource, const std::string& ns, const std::string& key,
                      const std::function<Json()>& build);
  bool exists(const kube::Resource& resource, const std::string& ns, const Json& object);
  Status delete_with_pods(const kube::Job& job);
  Status delete_job(const kube::Job& job, const kube::RemoveOptions& options);
  // The options with the GPU profiles that are in force now. kUnavailable: no profile is in force.
  Result<JobOptions> options_for(const api::Study& study);
  static Result<std::optional<GpuPlacement>> place_now(const api::Study& study,
                                                       const JobOptions& options);
  Status ensure_gpu_claim(const api::Study& study, const GpuPlacement& placement);
  Status restore_gpu_claim(const api::Study& study);
  // The GPUs that its workers get now; null: none, or no profile fits.
  std::shared_ptr<const api::GpuChoice> gpu_choice(const api::Study& study);
  std::optional<double> most_gpu_memory(const api::Study& study);
  bool may_grow_in_queue(const api::Study& study);
  Status resize_queued(const api::Trial& trial, const kube::Job& job, std::int64_t run,
                       std::int64_t workers);
  Status stop_queued(const kube::Job& job);
  void move_queue(const api::Study& study, const kube::Job& job);
  QueueWait queue_wait(const kube::Job& job, const api::Trial& trial, const api::RunRecord* record);
  WorkloadView workload_of(const kube::Job& job);
  Result<WorkloadView> ask_for_workload(const kube::Job& job);
  std::string why_held(const api::Trial& trial, std::int64_t run, bool fenced) const;
  void add_held(const api::Trial& trial, bool fenced, std::vector<core::Run>& runs);
  void forget_held(const std::string& ns, const std::string& trial);
  void warn_of_volume(const api::Study& study);
  void warn_of_metrics(const api::Study& study);
  Result<std::vector<std::shared_ptr<const kube::Pod>>> pods_of(const kube::Job& job);
  Result<core::Run> observe_one(const kube::Job& job, const api::Trial& trial,
                                const Result<api::Study>& study);
  JobView view_of(const kube::Job& job, const api::Trial& trial,
                  const std::vector<std::shared_ptr<const kube::Pod>>& pods, bool fenced);
  core::Run read_run(JobView view, const api::Trial& trial);
  void read_log(const kube::Job& job, const api::Study& study, const api::Trial& trial,
                const std::vector<std::shared_ptr<const kube::Pod>>& pods, core::Run& run);
  // Advances the gangs that compete with `job`; returns only errors about `job` itself.
  Status reconcile_gangs(const kube::Job& job);
  bool is_worth_telling(const kube::Job& job, const std::optional<Error>& error);
  std::string help_to_start(const JobView& view, const api::Trial& trial, const api::Study* study,
                            const core::Run& run);
  std::vector<Gang> gangs_of(const std::string& domain);
  Status apply_gang_step(const GangStep& step);
  std::string why_returned(const kube::Job& job);
  Status return_gang(const kube::Job& job, std::int64_t hold_ms);
  Status give_back(const kube::Job& job, const std::string& why);
  bool is_being_removed(const kube::Job& job);
  bool is_removed(const kube::Job& job, bool fenced);
  bool has_surplus_workers(const kube::Job& job);
  // Whether one of its workers has done all its work.
  bool has_begun_to_end(const kube::Job& job);
  Status set_gang_state(const kube::Job& job, GangState state, Json spec);
  void job_changed(const JobPtr& before, const JobPtr& after);
  void notify(const std::string& ns, const std::string& trial);
  void notify(const std::string& trial);

  kube::Client& client_;
  kube::Cache<kube::Job>& jobs_;
  kube::Cache<kube::Pod>& pods_;
  control::Store& store_;
  control::Clock& clock_;
  const JobOptions options_;
  mutable std::mutex mutex_;
  Refusals refusals_;
  std::map<std::string, std::set<kube::ObjectKey>> trial_pods_;  // by trial_group()
  std::set<kube::ObjectKey> refused_pods_;  // the scheduler finds no node for them
  std::set<RunName> held_;                  // runs that wait for the end of an earlier run's pods
  std::set<std::string> removed_;           // uids of deleted Jobs that are still in the cache
  // Until when an object that a Job or a Study owns is assumed to exist: by the owner's uid and a
  // name or resource, or a Service by its namespace and name.
  std::map<std::string, std::int64_t> ensured_until_;
  std::map<std::string, RunClock> run_clocks_;  // by the Job's uid
  // By the Job's uid: since when the objects that it needs cannot be written.
  std::map<std::string, std::int64_t> helpless_since_;
  std::map<std::string, SeenWorkload> workloads_;  // by the Job's uid
  std::set<std::string> fixed_studies_;  // uids of Studies with an event that they do not grow
  // By domain: the Jobs in the queue for nodes.
  std::map<std::string, std::set<kube::ObjectKey>> gangs_;
  GangTurns turns_;        // guarded by gang_mutex_
  std::mutex gang_mutex_;  // serialises reconcile_gangs(); locked before mutex_
  std::function<void(const std::string&)> listener_;
  LogMetrics logs_;  // last: its threads call notify()
};

}  // namespace fettle::kubernetes
