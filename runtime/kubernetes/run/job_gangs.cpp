// The part of JobRuns that carries out the transitions of gangs (gang.h decides them).
#include <algorithm>
#include <utility>

#include "api/quantity.h"
#include "api/timestamp.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/job/pod_end.h"
#include "runtime/kubernetes/job/rank_ends.h"
#include "runtime/kubernetes/run/job_runs.h"

namespace fettle::kubernetes {

// Requires gang_mutex_.
std::vector<Gang> JobRuns::gangs_of(const std::string& domain) {
  std::set<kube::ObjectKey> keys;
  {
    const std::lock_guard lock(mutex_);
    const auto found = gangs_.find(domain);
    if (found != gangs_.end()) keys = found->second;
  }
  std::vector<Gang> gangs;
  for (const kube::ObjectKey& key : keys) {
    JobPtr job = jobs_.get(key);
    if (job == nullptr || is_being_removed(*job)) continue;
    // Without the objects that its workers need they could not meet: it holds up no other gang.
    if (job->suspended && gang_state(*job) == GangState::kWaiting && !is_prepared(*job)) continue;
    const std::vector<PodPtr> pods = pods_.group(pod_group(*job));
    gangs.push_back(gang_of(std::move(job), pods));
    gangs.back().turn = turns_.turn_of(*gangs.back().job, clock_.now_ms());
  }
  return gangs;
}

JobRuns::GangLine JobRuns::gang_line() {
  std::vector<kube::ObjectKey> keys;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [domain, line] : gangs_) keys.insert(keys.end(), line.begin(), line.end());
  }
  GangLine out;
  for (const kube::ObjectKey& key : keys) {
    const JobPtr job = jobs_.get(key);
    if (job == nullptr || !waits_for_turn(*job)) continue;
    ++out.length;
    out.longest_ms = std::max(out.longest_ms, clock_.now_ms() - job->metadata.created_ms);
  }
  return out;
}

// Stops at the first step that fails, because later steps depend on it. A conflict means that the
// cache was stale, and the update that resolves it triggers another reconcile. Any other error is
// returned by the reconcile of the gang concerned.
Status JobRuns::reconcile_gangs(const kube::Job& job) {
  const GangState state = gang_state(job);
  if (state == GangState::kNone || state == GangState::kGathered) return success();
  const std::lock_guard lock(gang_mutex_);
  const auto steps =
      next_gang_steps(gangs_of(domain_of(job)), clock_.now_ms(), options_.gang_timeout_ms);
  for (const GangStep& step : steps) {
    const bool held = workers_with_node(*step.job, pods_.group(pod_group(*step.job))) > 0;
    Status taken = apply_gang_step(step);
    if (taken.ok()) {
      turns_.note(*step.job, step.to, held, clock_.now_ms(), options_.gang_timeout_ms);
      continue;
    }
    return step.job->metadata.uid == job.metadata.uid ? unless_gone(std::move(taken)) : success();
  }
  return success();
}

Status JobRuns::apply_gang_step(const GangStep& step) {
  const kube::Job& job = *step.job;
  // The gang leaves the nodes to others for as long as it was allowed to hold them.
  if (step.to == GangState::kReturned) return return_gang(job, options_.gang_timeout_ms);
  Json spec = Json::object();
  if (step.to == GangState::kOpen) spec.set("suspend", false);
  return set_gang_state(job, step.to, std::move(spec));
}

std::string JobRuns::why_returned(const kube::Job& job) {
  const std::vector<PodPtr> pods = pods_.group(pod_group(job));
  const std::int64_t with_node = workers_with_node(job, pods);
  const std::int64_t with_pod = gang_of(std::make_shared<kube::Job>(job), pods).with_pod;
  const std::int64_t open_ms = clock_.now_ms() - gang_opened_ms(job);
  // It may have been given back before its time (gang.h).
  const std::int64_t waited_ms = std::clamp(open_ms, std::int64_t{0}, options_.gang_timeout_ms);
  const std::int64_t waited_s = waited_ms / 1000;
  const std::string time = api::format_duration(static_cast<double>(waited_s));
  if (gang_state(job) == GangState::kGathered) {
    return "a worker lost its node before all had started, and found no other in " + time +
           "; they give way to others, and are tried again at the end of the line";
  }
  if (job.completions == 1) {
    return "its pod has no node after " + time +
           "; it gives way to others, and is tried again at the end of the line";
  }
  const std::string pods_missing =
      with_pod < job.completions
          ? " (only " + std::to_string(with_pod) +
                " have a pod; quota, limits or Pod Security of the namespace may forbid the others)"
          : "";
  return std::to_string(with_node) + " of " + std::to_string(job.completions) +
         " workers have a node after " + time + pods_missing +
         "; they give way to others, and are tried again at the end of the line";
}

// Deletes the Job of a run that starts again after `hold_ms`. The annotation comes first: without
// it the Job would count as deleted by a user.
Status JobRuns::return_gang(const kube::Job& job, std::int64_t hold_ms) {
  if (gang_state(job) != GangState::kReturned) {
    FETTLE_TRY(set_gang_state(job, GangState::kReturned, Json::object()));
  }
  if (hold_ms > 0) {
    const std::int64_t now_ms = clock_.now_ms();
    std::string why = why_returned(job);
    const std::lock_guard lock(mutex_);
    refusals_.hold_back(run_of(job), job.completions, std::move(why), now_ms, now_ms + hold_ms);
  }
  return delete_with_pods(job);
}

// Guarded by the resourceVersion: the run may have been stopped since.
Status JobRuns::set_gang_state(const kube::Job& job, GangState state, Json spec) {
  Json annotations = Json::object({{kGangAnnotation, to_string(state)}});
  if (state == GangState::kOpen) {
    annotations.set(kGangOpenedAnnotation, api::format_timestamp(clock_.now_ms()));
  }
  const Json metadata = Json::object({{"uid", job.metadata.uid},
                                      {"resourceVersion", job.metadata.resource_version},
                                      {"annotations", std::move(annotations)}});
  FETTLE_ASSIGN(const kube::Written written,
                client_.patch(kube::kJobs, key_of(job.metadata), "",
                              Json::object({{"metadata", metadata}, {"spec", std::move(spec)}})));
  return cache_job(written.object);
}

// Whether a worker that a resize removed has not ended yet.
bool JobRuns::has_surplus_workers(const kube::Job& job) {
  const std::string container = trial_container_of(job);
  const std::vector<PodPtr> pods = pods_.group(pod_group(job));
  return std::ranges::any_of(pods, [&](const PodPtr& pod) {
    return rank_of(*pod) >= job.completions &&
           may_be_alive(*pod, container, /*fenced=*/true, clock_.now_ms());
  });
}

bool JobRuns::has_begun_to_end(const kube::Job& job) {
  const std::string container = trial_container_of(job);
  const std::vector<PodPtr> pods = pods_.group(pod_group(job));
  return std::ranges::any_of(pods, [&](const PodPtr& pod) {
    const auto end = end_of_pod(*pod, container, /*stop_asked=*/false);
    return rank_of(*pod) < job.completions && end && end->outcome == api::Outcome::kSucceeded;
  });
}

}  // namespace fettle::kubernetes
