// PendingRuns: runs that were started and have no Job, with the reason and the time of the next
// attempt.
//
// The API server does not admit the Job (quota, RBAC, a namespace being deleted), or the workers of
// the last attempt did not all get a node, or a pod of an earlier run may still write checkpoints.
// Such a run is reported as Pending with the reason. Once its back-off or that pod has ended it is
// no longer reported, so the controller starts it again. So it is, if the API server refused it, as
// soon as another Job of the namespace is gone. Losing this memory in a restart only causes an
// earlier retry.
//
// Thread-safe; makes no calls. Index and clock must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/trial/trial.h"
#include "core/control/clock.h"
#include "core/plan.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/run/pod_index.h"

namespace fettle::kubernetes {

inline constexpr std::int64_t kRetryRefusedMs = 15'000;
// Beyond this number the oldest refusal is dropped, so that its run is retried.
inline constexpr std::size_t kMaxRefusals = 4'096;

class PendingRuns {
 public:
  PendingRuns(const PodIndex& pods, control::Clock& clock) : pods_(pods), clock_(clock) {}

  // Whether the run must wait for the end of an earlier run's pods (JobView::fenced). If so, it is
  // Pending from now on.
  bool hold(const api::Trial& trial, std::int64_t run, bool fenced);
  // The API server does not admit the run's Job.
  void refuse(const RunName& run, std::int64_t workers, std::string why);
  // Like refuse(), but retried not before `hold_ms` have passed, whichever Jobs end before.
  void hold_back(const RunName& run, std::int64_t workers, std::string why, std::int64_t hold_ms);
  void remove(const RunName& run);

  // Appends the trial's pending runs. The Job of a run decides its state: a run in `runs` that was
  // refused before is left out.
  void append_to(std::vector<core::Run>& runs, const api::Trial& trial, bool fenced);

  // Call when a pod of the trial is gone: its runs may have waited for this pod, and the trial may
  // be gone, too. A run that still has to wait is started again, and held again.
  void pod_gone(const std::string& ns, const std::string& trial);
  // Call when a Job of the namespace is gone: releases the run that was refused first, to be
  // retried.
  std::optional<RunName> release_one(const std::string& ns);

 private:
  struct Refusal {
    std::int64_t workers = 1;
    std::string why;
    std::int64_t since_ms = 0;
    std::int64_t until_ms = 0;
    bool may_be_released = true;
  };
  void insert(const RunName& run, Refusal refusal);
  void append_held(std::vector<core::Run>& runs, const api::Trial& trial, bool fenced);
  std::string why_held(const api::Trial& trial, std::int64_t run, bool fenced) const;

  const PodIndex& pods_;
  control::Clock& clock_;
  std::mutex mutex_;  // guards the rest
  std::map<RunName, Refusal> refusals_;
  std::set<RunName> held_;  // runs that wait for the end of an earlier run's pods
};

}  // namespace fettle::kubernetes
