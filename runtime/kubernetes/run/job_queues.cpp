// The part of JobRuns that is about Jobs in a queue of Kueue (queue.h, workload.h).
#include <algorithm>
#include <utility>

#include "control/refusals.h"
#include "core/elastic.h"
#include "core/names.h"
#include "kube/labels.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/job/queue.h"
#include "runtime/kubernetes/run/job_runs.h"

namespace fettle::kubernetes {
namespace {

using State = WorkloadView::State;

// No question is asked about a Job that is admitted sooner.
constexpr std::int64_t kAskAfterMs = 5'000;
constexpr std::int64_t kAskAgainMs = 10'000;
// Used if Kueue, or the right to read Workloads, is missing.
constexpr std::int64_t kAskSeldomMs = 300'000;
// A run that is stopped ends by this deadline, which has passed or is about to.
constexpr std::int64_t kStopDeadlineSeconds = 1;

bool is_suspended_by_queue(const kube::Job& job) { return job.suspended && !queue_of(job).empty(); }

std::int64_t suspended_ms(const kube::Job& job) {
  const auto* suspended = kube::find_condition(job.conditions, "Suspended");
  return std::max(job.metadata.created_ms, suspended == nullptr ? 0 : suspended->since_ms);
}

}  // namespace

// Kueue adapts the Workload of a suspended Job to the Job. Fewer workers than at its creation need
// another Job, since its pods' environment has the world size of the creation.
Status JobRuns::resize_queued(const api::Trial& trial, const kube::Job& job, std::int64_t run,
                              std::int64_t workers) {
  if (workers < workers_at_start(job)) return remove(trial, run);
  return patch_spec(job, Json::object({{"completions", workers}, {"parallelism", workers}}));
}

// Kueue frees the quota of a deleted Job at once, while its pods still end, but the quota of a
// failed Job only when they have ended. A suspended Job holds no quota.
Status JobRuns::stop_queued(const kube::Job& job) {
  if (job.suspended) return delete_with_pods(job);
  if (has_ended(job) || job.deadline_seconds == kStopDeadlineSeconds) return success();
  return patch_spec(job, Json::object({{"activeDeadlineSeconds", kStopDeadlineSeconds}}));
}

// If false, an event also says so, once in the life of this process.
bool JobRuns::may_grow_in_queue(const api::Study& study) {
  if (!core::sizes_itself(study.spec)) return true;
  JobPtr fixed;
  for (const JobPtr& job : jobs_.all()) {
    const bool is_ours =
        job->metadata.ns == study.metadata.ns &&
        kube::text_in(job->metadata.labels, core::kStudyLabel) == study.metadata.name;
    if (is_ours && !may_grow(*job)) fixed = job;
  }
  if (fixed == nullptr) return true;
  {
    const std::lock_guard lock(mutex_);
    if (!fixed_studies_.insert(study.metadata.uid).second) return false;
  }
  store_.record_event({control::Kind::kStudy, {study.metadata.ns, study.metadata.name}, ""},
                      /*warning=*/false, "FixedSize",
                      "its trials keep " + std::to_string(study.spec.trial.workers.min) +
                          " workers: Kueue would preempt a trial that grows in queue " +
                          queue_of(*fixed) +
                          ", because its feature gate ElasticJobsViaWorkloadSlices is off",
                      clock_.now_ms());
  return false;
}

// Ignores errors: the next reconcile tries again.
void JobRuns::move_queue(const api::Study& study, const kube::Job& job) {
  if (job.metadata.deleted_ms != 0 || has_ended(job)) return;
  std::optional<Json> metadata = moved_queue(study.spec.trial, job);
  if (!metadata) return;
  metadata->set("uid", job.metadata.uid);
  const auto written = client_.patch(kube::kJobs, key_of(job.metadata), "",
                                     Json::object({{"metadata", *std::move(metadata)}}));
  if (written.ok()) (void)cache_job(written->object);
}

QueueWait JobRuns::queue_wait(const kube::Job& job, const api::Trial& trial,
                              const api::RunRecord* record) {
  QueueWait wait;
  if (!is_suspended_by_queue(job)) return wait;
  wait.workload = workload_of(job);
  if (record == nullptr) return wait;
  wait.preempted = !record->pod_uid.empty();
  wait.step = trial.status.report ? trial.status.report->step : 0;
  wait.recorded = record->message;
  return wait;
}

WorkloadView JobRuns::workload_of(const kube::Job& job) {
  const std::int64_t now_ms = clock_.now_ms();
  {
    const std::lock_guard lock(mutex_);
    const SeenWorkload& seen = workloads_[job.metadata.uid];
    if (now_ms < seen.ask_ms || now_ms < suspended_ms(job) + kAskAfterMs) return seen.view;
  }
  const Result<WorkloadView> answer = ask_for_workload(job);
  const std::lock_guard lock(mutex_);
  SeenWorkload& seen = workloads_[job.metadata.uid];
  seen.ask_ms = now_ms + kAskAgainMs;
  if (!answer.ok()) {
    const bool forbidden = answer.error().code == ErrorCode::kForbidden;
    if (forbidden) seen = {{}, now_ms + kAskSeldomMs, false};
    return seen.view;
  }
  // A Workload that does not fit is finished a moment before the next one exists.
  const bool was_finished = std::exchange(seen.finished, answer->state == State::kFinished);
  if (seen.finished && !was_finished) return seen.view;
  // Amounts in its message change all the time, and each change would be a write.
  const bool says_the_same = seen.view.state == answer->state && seen.view.name == answer->name &&
                             control::same_reason(seen.view.message, answer->message);
  if (!says_the_same) seen.view = *answer;
  return seen.view;
}

Result<WorkloadView> JobRuns::ask_for_workload(const kube::Job& job) {
  kube::ListOptions of_job;
  of_job.label_selector = std::string(kWorkloadJobLabel) + "=" + job.metadata.uid;
  for (const kube::Resource& resource : {kWorkloads, kOldWorkloads}) {
    const Result<std::vector<Json>> listed = client_.list(resource, job.metadata.ns, of_job);
    if (listed.ok()) return read_workloads(*listed);
    if (listed.error().code != ErrorCode::kNotFound) return listed.error();
  }
  return WorkloadView{State::kNoKueue, "", ""};
}

Status JobRuns::check_progress(const api::Trial& trial) {
  for (const JobPtr& job : jobs_.group(trial_group(trial.metadata.ns, trial.metadata.name))) {
    if (!is_owned_by(*job, trial) || !is_suspended_by_queue(*job)) continue;
    if (job->metadata.deleted_ms != 0 || is_being_removed(*job)) continue;
    const std::lock_guard lock(mutex_);
    const auto seen = workloads_.find(job->metadata.uid);
    if (seen == workloads_.end() || seen->second.view.state != State::kInactive) continue;
    const api::RunRecord* record = find_record(trial, run_of(*job).run);
    QueueWait wait;
    wait.workload = seen->second.view;
    if (record != nullptr) wait.recorded = record->message;
    return Error{ErrorCode::kUnavailable, job->metadata.name + ": " + why_blocked(*job, wait)};
  }
  return success();
}

}  // namespace fettle::kubernetes
