// JobClient: finds, creates, changes and deletes Jobs in the API server.
//
// Every write is idempotent: names are deterministic, patches and deletions carry the uid as a
// precondition. The Job that a write returns goes into the cache at once.
//
// Thread-safe. Client, cache and clock must outlive it.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "core/control/clock.h"
#include "kube/client/client.h"
#include "kube/objects/objects.h"
#include "kube/watch/cache.h"
#include "runtime/kubernetes/job/gang.h"

namespace fettle::kubernetes {

class JobClient {
 public:
  JobClient(kube::Client& client, kube::Cache<kube::Job>& jobs, control::Clock& clock)
      : client_(client), jobs_(jobs), clock_(clock) {}

  // The Job of the run, from the cache; null if the trial owns none of its name.
  JobPtr find(const api::Trial& trial, std::int64_t run) const;

  // Also succeeds if an earlier attempt created the Job. kAlreadyExists: another object has its
  // name. kUnavailable: the earlier Job is still being deleted.
  Status create(const Json& job, const api::Trial& trial, std::int64_t run);

  // Patches. The first two do nothing to a Job that is gone.
  Status patch_spec(const kube::Job& job, Json spec);
  Status resize(const kube::Job& job, std::int64_t workers);
  // `metadata`: to merge (queue.h). Fails if the Job is gone.
  Status patch_metadata(const kube::Job& job, Json metadata);
  // `spec`: to merge into the Job's. Guarded by the resourceVersion: the run may have been stopped
  // since; then kConflict.
  Status set_gang_state(const kube::Job& job, GangState state, Json spec);

  // Deletes the Job of a run whose end is recorded. `foreground`: it stays until its last pod is
  // gone.
  Status remove(const kube::Job& job, bool foreground);
  // Ends the run: its pods get SIGTERM and their grace period, and the Job remains visible until
  // the last of them is gone.
  Status remove_with_pods(const kube::Job& job);
  // Whether remove() was called, and the Job is still in the cache.
  bool is_being_removed(const kube::Job& job) const;
  // Call when the Job has left the cache.
  void forget(const std::string& uid);

 private:
  Status adopt(const api::Trial& trial, const std::string& name);
  Status patch(const kube::Job& job, const Json& change);
  Status erase(const kube::Job& job, bool foreground);
  Status cache(const Json& object);

  kube::Client& client_;
  kube::Cache<kube::Job>& jobs_;
  control::Clock& clock_;
  mutable std::mutex mutex_;
  std::set<std::string> removed_;  // uids of Jobs that remove() deleted; guarded by mutex_
};

}  // namespace fettle::kubernetes
