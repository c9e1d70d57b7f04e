// GangScheduler: opens, completes and returns the gangs that queue for nodes, as gang.h decides.
//
// The state of a gang is on its Job. This object remembers which Jobs queue in which domain, and
// whose turn is next: only a cache.
//
// Thread-safe. All that it is given must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/control/clock.h"
#include "kube/objects/objects.h"
#include "kube/watch/cache.h"
#include "runtime/kubernetes/job/gang.h"
#include "runtime/kubernetes/job/gang_turns.h"
#include "runtime/kubernetes/run/job_client.h"
#include "runtime/kubernetes/run/pending_runs.h"
#include "runtime/kubernetes/run/prerequisites.h"

namespace fettle::kubernetes {

// The number of gangs that wait for their turn, and how long the first of them has waited.
struct GangLine {
  std::int64_t length = 0;
  std::int64_t longest_ms = 0;
};

class GangScheduler {
 public:
  struct Parts {
    const kube::Cache<kube::Job>& jobs;
    const kube::Cache<kube::Pod>& pods;
    JobClient& client;
    const Prerequisites& prerequisites;
    PendingRuns& pending;
    control::Clock& clock;
  };
  GangScheduler(const Parts& parts, std::int64_t timeout_ms)
      : parts_(parts), timeout_ms_(timeout_ms) {}

  // Call at every change of a Job in the cache. `gone`: it has left the cache.
  void job_changed(const kube::Job& job, bool gone);
  GangLine line() const;

  // Advances the gangs that compete with `job`; returns only errors about `job` itself.
  Status reconcile(const kube::Job& job);

  // Deletes the Job of a run that holds nodes for nothing, or has the wrong size; the run starts
  // again, but not before `hold_ms` have passed, for the reason `why`.
  Status return_run(const kube::Job& job, const std::string& why, std::int64_t hold_ms);
  // The same for a gang that is not complete in time: it leaves the nodes to others for as long as
  // it was allowed to hold them.
  Status return_gang(const kube::Job& job);

 private:
  std::vector<Gang> gangs_of(const std::string& domain) const;
  Status apply(const GangStep& step);

  const Parts parts_;
  const std::int64_t timeout_ms_;
  std::mutex turn_mutex_;  // held by reconcile(), which calls the API; locked before mutex_
  GangTurns turns_;        // guarded by turn_mutex_
  mutable std::mutex mutex_;
  // By domain: the Jobs in the queue for nodes. Guarded by mutex_.
  std::map<std::string, std::set<kube::ObjectKey>> queued_;
};

}  // namespace fettle::kubernetes
