#include "runtime/kubernetes/run/workload_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/control/refusals.h"
#include "runtime/kubernetes/job/queue.h"

namespace fettle::kubernetes {
namespace {

using State = WorkloadView::State;

// No question is asked about a Job that is admitted sooner.
constexpr std::int64_t kAskAfterMs = 5'000;
constexpr std::int64_t kAskAgainMs = 10'000;
// Used if Kueue, or the right to read Workloads, is missing.
constexpr std::int64_t kAskSeldomMs = 300'000;

std::int64_t suspended_ms(const kube::Job& job) {
  const auto* suspended = kube::find_condition(job.conditions, "Suspended");
  return std::max(job.metadata.created_ms, suspended == nullptr ? 0 : suspended->since_ms);
}

}  // namespace

QueueWait WorkloadCache::wait_of(const kube::Job& job, const api::Trial& trial,
                                 const api::RunRecord* record) {
  QueueWait wait;
  if (!is_suspended_by_queue(job)) return wait;
  wait.workload = view_of(job);
  if (record == nullptr) return wait;
  wait.preempted = !record->pod_uid.empty();  // the uid is recorded once the run runs
  wait.step = trial.status.report ? trial.status.report->step : 0;
  wait.recorded = record->message;
  return wait;
}

WorkloadView WorkloadCache::view_of(const kube::Job& job) {
  const std::int64_t now_ms = clock_.now_ms();
  {
    const std::lock_guard lock(mutex_);
    const Answer& known = answers_[job.metadata.uid];  // kUnknown before the first answer
    if (now_ms < known.ask_ms || now_ms < suspended_ms(job) + kAskAfterMs) return known.view;
  }
  const Result<WorkloadView> answer = ask(job);
  const std::lock_guard lock(mutex_);
  Answer& known = answers_[job.metadata.uid];
  known.ask_ms = now_ms + kAskAgainMs;
  if (!answer.ok()) {
    const bool forbidden = answer.error().code == ErrorCode::kForbidden;
    if (forbidden) known = {{}, now_ms + kAskSeldomMs, false};
    return known.view;  // after any other error, the last answer stands
  }
  // A Workload that does not fit is finished a moment before the next one exists.
  const bool was_finished = std::exchange(known.finished, answer->state == State::kFinished);
  if (known.finished && !was_finished) return known.view;
  // Amounts in its message change all the time, and each change would be a write.
  const bool says_the_same = known.view.state == answer->state && known.view.name == answer->name &&
                             control::same_reason(known.view.message, answer->message);
  if (!says_the_same) known.view = *answer;
  return known.view;
}

Result<WorkloadView> WorkloadCache::ask(const kube::Job& job) {
  kube::ListOptions of_job;
  of_job.label_selector = std::string(kWorkloadJobLabel) + "=" + job.metadata.uid;
  for (const kube::Resource& resource : {kWorkloads, kOldWorkloads}) {
    const Result<std::vector<Json>> listed = client_.list(resource, job.metadata.ns, of_job);
    if (listed.ok()) return read_workloads(*listed);
    if (listed.error().code != ErrorCode::kNotFound) return listed.error();
  }
  return WorkloadView{State::kNoKueue, "", ""};
}

Status WorkloadCache::check_active(const kube::Job& job, const api::RunRecord* record) const {
  const std::lock_guard lock(mutex_);
  const auto known = answers_.find(job.metadata.uid);
  if (known == answers_.end() || known->second.view.state != State::kInactive) return success();
  QueueWait wait;
  wait.workload = known->second.view;
  if (record != nullptr) wait.recorded = record->message;
  return Error{ErrorCode::kUnavailable, job.metadata.name + ": " + why_blocked(job, wait)};
}

void WorkloadCache::forget(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  answers_.erase(uid);
}

}  // namespace fettle::kubernetes
