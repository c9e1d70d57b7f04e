#include "runtime/kubernetes/run/pending_runs.h"

#include <algorithm>
#include <utility>

#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/pod_end.h"
#include "runtime/kubernetes/job/rank_ends.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::kubernetes {
namespace {

bool is_run_of(const RunName& run, const api::Trial& trial) {
  const api::Metadata& metadata = trial.metadata;
  return run.ns == metadata.ns && run.trial == metadata.name && run.uid == metadata.uid;
}

}  // namespace

bool PendingRuns::hold(const api::Trial& trial, std::int64_t run, bool fenced) {
  if (why_held(trial, run, fenced).empty()) return false;
  const std::lock_guard lock(mutex_);
  held_.insert(name_of(trial, run));
  return true;
}

// Names the pod of an earlier run that may still write checkpoints, in its grace period after its
// Job was deleted; "" = none.
std::string PendingRuns::why_held(const api::Trial& trial, std::int64_t run, bool fenced) const {
  if (run == 0) return "";  // the first run has no earlier one
  const std::int64_t now_ms = clock_.now_ms();
  for (const PodPtr& pod : pods_.of_trial(trial)) {
    const api::Metadata& metadata = pod->metadata;
    const bool of_other_run = kube::text_in(metadata.labels, kRunLabel) != std::to_string(run);
    // The pod as a whole is asked: the Job that names the container of its trial may be gone.
    if (!of_other_run || !may_write(*pod, /*container=*/"", fenced, now_ms)) continue;
    const std::string words = "pod " + metadata.name + " of an earlier run has not ended yet";
    if (!pod->owner) return words + "; its Job was deleted without it: delete the pod as well";
    const bool overdue = metadata.deleted_ms != 0 && now_ms >= metadata.deleted_ms + kOverdueMs;
    return overdue ? words + ": " + why_overdue(*pod, fenced) : words;
  }
  return "";
}

void PendingRuns::refuse(const RunName& run, std::int64_t workers, std::string why) {
  const std::int64_t now_ms = clock_.now_ms();
  insert(run, {workers, std::move(why), now_ms, now_ms + kRetryRefusedMs,
               /*may_be_released=*/true});
}

void PendingRuns::hold_back(const RunName& run, std::int64_t workers, std::string why,
                            std::int64_t hold_ms) {
  const std::int64_t now_ms = clock_.now_ms();
  insert(run, {workers, std::move(why), now_ms, now_ms + hold_ms, /*may_be_released=*/false});
}

void PendingRuns::insert(const RunName& run, Refusal refusal) {
  const std::lock_guard lock(mutex_);
  refusals_[run] = std::move(refusal);
  if (refusals_.size() <= kMaxRefusals) return;
  refusals_.erase(std::ranges::min_element(refusals_, [](const auto& a, const auto& b) {
    return a.second.since_ms < b.second.since_ms;
  }));
}

void PendingRuns::remove(const RunName& run) {
  const std::lock_guard lock(mutex_);
  refusals_.erase(run);
  held_.erase(run);
}

void PendingRuns::append_to(std::vector<core::Run>& runs, const api::Trial& trial, bool fenced) {
  append_held(runs, trial, fenced);
  const std::int64_t now_ms = clock_.now_ms();
  const std::lock_guard lock(mutex_);
  // The runs of a trial are neighbours: RunName compares the number last.
  auto refused = refusals_.lower_bound(name_of(trial, 0));
  for (; refused != refusals_.end() && is_run_of(refused->first, trial); ++refused) {
    const auto& [name, refusal] = *refused;
    if (now_ms >= refusal.until_ms) continue;  // not reported, so the controller starts it again
    if (std::ranges::find(runs, name.run, &core::Run::id) != runs.end()) continue;
    core::Run run;
    run.id = name.run;
    run.workers = refusal.workers;
    run.reason = refusal.why;
    runs.push_back(std::move(run));
  }
}

// A run that need not wait any longer is left out, so that the controller starts it again.
void PendingRuns::append_held(std::vector<core::Run>& runs, const api::Trial& trial, bool fenced) {
  std::vector<RunName> held;  // a copy: why_held() reads the pods without mutex_
  {
    const std::lock_guard lock(mutex_);
    auto name = held_.lower_bound(name_of(trial, 0));
    for (; name != held_.end() && is_run_of(*name, trial); ++name) held.push_back(*name);
  }
  for (const RunName& name : held) {
    core::Run run;
    run.id = name.run;
    run.workers = trial.spec.workers;
    run.reason = why_held(trial, name.run, fenced);
    if (!run.reason.empty()) {
      runs.push_back(std::move(run));
      continue;
    }
    const std::lock_guard lock(mutex_);
    held_.erase(name);
  }
}

void PendingRuns::pod_gone(const std::string& ns, const std::string& trial) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const RunName& run) { return run.ns == ns && run.trial == trial; });
}

std::optional<RunName> PendingRuns::release_one(const std::string& ns) {
  const std::lock_guard lock(mutex_);
  auto oldest = refusals_.end();
  for (auto it = refusals_.begin(); it != refusals_.end(); ++it) {
    if (it->first.ns != ns || !it->second.may_be_released) continue;
    const bool older = oldest == refusals_.end() || it->second.since_ms < oldest->second.since_ms;
    if (older) oldest = it;
  }
  if (oldest == refusals_.end()) return std::nullopt;
  RunName released = oldest->first;
  refusals_.erase(oldest);
  return released;
}

}  // namespace fettle::kubernetes
