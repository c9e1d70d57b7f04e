// JobRuns: control::Runs as Jobs of a Kubernetes cluster.
//
// A run is the Job "<trial>-r<run>" (job_builder.h), owned by its Trial; what is seen of it comes
// from caches of Jobs and pods (run_of_job.h). What this object writes is put into the caches at
// once. Every write may be repeated: names are deterministic, patches and deletions name the uid.
// All state is in the cluster; what is remembered here (refusals, logs being read, Services and
// claims known to be there, when runs were seen to change) is found out again after a restart;
// where a gang stands is on its Job (gang.h).
//
// Thread-safe. Client, caches, Store and clock outlive it; make it before the informers start, and
// destroy it after they have stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "control/clock.h"
#include "control/runs.h"
#include "control/store.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/objects.h"
#include "runtime/kubernetes/gang.h"
#include "runtime/kubernetes/job_builder.h"
#include "runtime/kubernetes/log_metrics.h"
#include "runtime/kubernetes/refusals.h"
#include "runtime/kubernetes/run_clock.h"

namespace fettle::kubernetes {

class JobRuns final : public control::Runs {
 public:
  JobRuns(kube::Client& client, kube::Cache<kube::Job>& jobs, kube::Cache<kube::Pod>& pods,
          control::Store& store, control::Clock& clock, JobOptions options);
  ~JobRuns() override;

  // Dry runs of the Job and of its pod (template_check.h). Tells of a volume that only one node can
  // have at a time.
  Status check(const api::Study& study) override;
  // kAlreadyExists: another object has the Job's name. A Job that the server does not admit now is
  // no error: the run is Pending, and asked for again. So is one while pods of the trial's earlier
  // runs have not ended: two runs must not write checkpoints to one place.
  Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) override;
  Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) override;
  // Suspends the Job, which ends its pods.
  Status stop(const api::Trial& trial, std::int64_t run) override;
  Status remove(const api::Trial& trial, std::int64_t run) override;
  Result<std::vector<core::Run>> observe(const api::Trial& trial) override;
  core::Capacity capacity(const api::Study& study) override;
  void watch(std::function<void(const std::string& trial)> listener) override;
  // Ends the threads that read logs, and with them every call that is not somebody else's.
  void stop_reading();

 private:
  JobPtr find_job(const api::Trial& trial, std::int64_t run) const;
  Status create(const Json& job, const api::Trial& trial, std::int64_t run);
  Status adopt(const api::Trial& trial, const std::string& name);
  Status keep(const Json& job);
  Status patch_spec(const kube::Job& job, Json spec);
  Status ensure_service(const kube::Job& job);
  Status ensure_claim(const api::Study& study);
  Result<bool> ensure(const kube::Resource& resource, const api::Metadata& owner,
                      const std::function<Json()>& build);
  std::string why_held(const api::Trial& trial, std::int64_t run) const;
  void add_held(const api::Trial& trial, std::vector<core::Run>& runs);
  void warn_of_volume(const api::Study& study);
  Result<std::vector<std::shared_ptr<const kube::Pod>>> pods_of(const kube::Job& job);
  Result<core::Run> observe_one(const kube::Job& job, const api::Trial& trial);
  void read_log(const kube::Job& job, const api::Study& study, const api::Trial& trial,
                const std::vector<std::shared_ptr<const kube::Pod>>& pods, core::Run& run);
  // Looks after the gangs that compete with `job`; errors are those about itself.
  Status tend_gangs(const kube::Job& job);
  std::vector<Gang> gangs_of(const std::string& domain);
  Status take_gang_step(const GangStep& step);
  std::string why_returned(const kube::Job& job);
  Status return_gang(const kube::Job& job, std::int64_t hold_ms);
  bool is_being_removed(const kube::Job& job);
  bool is_removed(const kube::Job& job);
  bool has_surplus_workers(const kube::Job& job);
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
  std::mutex mutex_;
  Refusals refusals_;
  std::set<RunName> held_;         // runs that wait for pods of earlier ones to end
  std::set<std::string> removed_;  // uids of Jobs that were deleted and are still in the cache
  // Uids of Jobs whose Service, and of Studies whose claim, is there, and until when to believe it.
  std::map<std::string, std::int64_t> served_;
  std::map<std::string, RunClock> run_clocks_;  // by the Job's uid
  // By domain: the Jobs that wait for nodes, or did a moment ago.
  std::map<std::string, std::set<kube::ObjectKey>> gangs_;
  std::mutex gang_mutex_;  // held while a gang is looked after; taken before mutex_
  std::function<void(const std::string&)> listener_;
  LogMetrics logs_;  // last: its threads call notify()
};

}  // namespace fettle::kubernetes
