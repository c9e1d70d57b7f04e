// The part of JobRuns that looks after gangs (gang.h says what is to be done).
#include <algorithm>
#include <utility>

#include "api/quantity.h"
#include "api/timestamp.h"
#include "runtime/kubernetes/job_runs.h"
#include "runtime/kubernetes/our_objects.h"
#include "runtime/kubernetes/rank_ends.h"

namespace fettle::kubernetes {

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
    const std::int64_t with_node = workers_with_node(*job, pods_.group(job->metadata.uid));
    gangs.push_back({std::move(job), with_node});
  }
  return gangs;
}

// A step that fails is the last one: those after it rest on it. One that rested on an old view is
// taken again at the look that the newer one brings; what else goes wrong is told at the look at
// the gang itself.
Status JobRuns::tend_gangs(const kube::Job& job) {
  const GangState state = gang_state(job);
  if (state == GangState::kNone || state == GangState::kGathered) return success();
  const std::lock_guard lock(gang_mutex_);
  const auto steps =
      next_gang_steps(gangs_of(domain_of(job)), clock_.now_ms(), options_.gang_timeout_ms);
  for (const GangStep& step : steps) {
    Status taken = take_gang_step(step);
    if (taken.ok()) continue;
    return step.job->metadata.uid == job.metadata.uid ? unless_gone(std::move(taken)) : success();
  }
  return success();
}

Status JobRuns::take_gang_step(const GangStep& step) {
  const kube::Job& job = *step.job;
  if (step.to == GangState::kReturned) return return_gang(job, options_.gang_timeout_ms);
  Json spec = Json::object();
  if (step.to == GangState::kOpen) spec.set("suspend", false);
  return set_gang_state(job, step.to, std::move(spec));
}

std::string JobRuns::why_returned(const kube::Job& job) {
  const std::int64_t with_node = workers_with_node(job, pods_.group(job.metadata.uid));
  return std::to_string(with_node) + " of " + std::to_string(job.completions) +
         " workers have a node after " +
         api::format_duration(static_cast<double>(options_.gang_timeout_ms) / 1000) +
         "; they give way to others, and are tried again at the end of the line";
}

// Deletes the Job of a run that is started again, but not for `hold_ms`. Written down first: a Job
// that is gone would count as one that somebody deleted.
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
  kube::RemoveOptions options;
  options.uid = job.metadata.uid;
  options.foreground = true;
  return unless_gone(client_.remove(kube::kJobs, key_of(job.metadata), options));
}

// Fails if the Job is not what was seen: perhaps its run was stopped meanwhile.
Status JobRuns::set_gang_state(const kube::Job& job, GangState state, Json spec) {
  Json annotations = Json::object({{kGangAnnotation, to_string(state)}});
  if (state == GangState::kOpen) {
    annotations.set(kGangOpenedAnnotation, api::format_timestamp(clock_.now_ms()));
  }
  const Json metadata = Json::object({{"uid", job.metadata.uid},
                                      {"resourceVersion", job.metadata.resource_version},
                                      {"annotations", std::move(annotations)}});
  const auto written =
      client_.patch(kube::kJobs, key_of(job.metadata), "",
                    Json::object({{"metadata", metadata}, {"spec", std::move(spec)}}));
  if (!written.ok()) return written.error();
  return keep(written->object);
}

// A worker that was taken away and has not ended yet.
bool JobRuns::has_surplus_workers(const kube::Job& job) {
  const std::string container = trial_container_of(job);
  const std::vector<PodPtr> pods = pods_.group(job.metadata.uid);
  return std::any_of(pods.begin(), pods.end(), [&](const PodPtr& pod) {
    return rank_of(*pod) >= job.completions && may_live(*pod, container, clock_.now_ms());
  });
}

}  // namespace fettle::kubernetes
