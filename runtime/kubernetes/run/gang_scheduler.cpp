#include "runtime/kubernetes/run/gang_scheduler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/kubernetes/job/ownership.h"

namespace fettle::kubernetes {

void GangScheduler::job_changed(const kube::Job& job, bool gone) {
  const std::string domain = domain_of(job);
  if (domain.empty()) return;
  const bool queues = !gone && is_in_queue(job);
  const kube::ObjectKey key = key_of(job.metadata);
  const std::lock_guard lock(mutex_);
  std::set<kube::ObjectKey>& line = queued_[domain];
  queues ? (void)line.insert(key) : (void)line.erase(key);
  if (line.empty()) queued_.erase(domain);
}

GangLine GangScheduler::line() const {
  std::vector<kube::ObjectKey> keys;  // a copy: the cache is read without mutex_
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [domain, line] : queued_) keys.insert(keys.end(), line.begin(), line.end());
  }
  GangLine out;
  for (const kube::ObjectKey& key : keys) {
    const JobPtr job = parts_.jobs.get(key);
    if (job == nullptr || !waits_for_turn(*job)) continue;
    ++out.length;
    out.longest_ms = std::max(out.longest_ms, parts_.clock.now_ms() - job->metadata.created_ms);
  }
  return out;
}

// Stops at the first step that fails, because later steps depend on it. A conflict means that the
// cache was stale, and the update that resolves it triggers another reconcile. Any other error is
// returned by the reconcile of the gang concerned.
Status GangScheduler::reconcile(const kube::Job& job) {
  const GangState state = gang_state(job);
  if (state == GangState::kNone || state == GangState::kGathered) return success();
  const std::lock_guard lock(turn_mutex_);
  const auto steps = next_gang_steps(gangs_of(domain_of(job)), parts_.clock.now_ms(), timeout_ms_);
  for (const GangStep& step : steps) {
    // Counted before the step, which may delete the pods.
    const bool held = workers_with_node(*step.job, parts_.pods.group(pod_group(*step.job))) > 0;
    Status taken = apply(step);
    if (taken.ok()) {
      turns_.note(*step.job, step.to, held, parts_.clock.now_ms(), timeout_ms_);
      continue;
    }
    return step.job->metadata.uid == job.metadata.uid ? unless_gone(std::move(taken)) : success();
  }
  return success();
}

// Requires turn_mutex_.
std::vector<Gang> GangScheduler::gangs_of(const std::string& domain) const {
  std::set<kube::ObjectKey> keys;
  {
    const std::lock_guard lock(mutex_);
    const auto found = queued_.find(domain);
    if (found != queued_.end()) keys = found->second;
  }
  std::vector<Gang> gangs;
  for (const kube::ObjectKey& key : keys) {
    JobPtr job = parts_.jobs.get(key);
    if (job == nullptr || parts_.client.is_being_removed(*job)) continue;
    // Without the objects that its workers need they could not meet: it holds up no other gang.
    if (waits_for_turn(*job) && !parts_.prerequisites.are_known(*job)) continue;
    const std::vector<PodPtr> pods = parts_.pods.group(pod_group(*job));
    gangs.push_back(gang_of(std::move(job), pods));
    gangs.back().turn = turns_.turn_of(*gangs.back().job, parts_.clock.now_ms());
  }
  return gangs;
}

Status GangScheduler::apply(const GangStep& step) {
  if (step.to == GangState::kReturned) return return_gang(*step.job);
  Json spec = Json::object();  // kGathered changes only the annotation
  if (step.to == GangState::kOpen) spec.set("suspend", false);
  return parts_.client.set_gang_state(*step.job, step.to, std::move(spec));
}

Status GangScheduler::return_gang(const kube::Job& job) {
  const Gang gang =
      gang_of(std::make_shared<const kube::Job>(job), parts_.pods.group(pod_group(job)));
  return return_run(job, why_returned(gang, parts_.clock.now_ms(), timeout_ms_), timeout_ms_);
}

// The annotation comes first: without it the Job would count as deleted by a user.
Status GangScheduler::return_run(const kube::Job& job, const std::string& why,
                                 std::int64_t hold_ms) {
  if (gang_state(job) != GangState::kReturned) {
    FETTLE_TRY(parts_.client.set_gang_state(job, GangState::kReturned, Json::object()));
  }
  if (hold_ms > 0) parts_.pending.hold_back(run_of(job), job.completions, why, hold_ms);
  return parts_.client.remove_with_pods(job);
}

}  // namespace fettle::kubernetes
