#include "runtime/kubernetes/run/job_runs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/fields/quantity.h"
#include "core/names.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/job_builder.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/job/queue.h"
#include "runtime/kubernetes/job/rank_ends.h"
#include "runtime/kubernetes/job/run_of_job.h"
#include "runtime/kubernetes/log/run_output.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/run/gpu_options.h"
#include "runtime/kubernetes/run/template_check.h"
#include "runtime/sentences.h"

namespace fettle::kubernetes {
namespace {

// A run that could not start is tried again after this; others have its GPUs meanwhile.
constexpr std::int64_t kStartRetryMs = 600'000;
// A run that is stopped ends by this deadline, which has passed or is about to.
constexpr std::int64_t kStopDeadlineSeconds = 1;

// Whether its program writes no checkpoint once another run of the trial does, as the built-in
// trainer (CheckpointFence).
bool is_fenced(const api::Study& study) { return study.spec.trial.trainer.has_value(); }

control::Change event_of(const std::string& ns, const std::string& study) {
  return {control::Kind::kStudy, {ns, study}, ""};
}

// Kueue frees the quota of a deleted Job at once, while its pods still end, but the quota of a
// failed Job only when they have ended. A suspended Job holds no quota.
Status stop_queued(const kube::Job& job, JobClient& jobs) {
  if (job.suspended) return jobs.remove_with_pods(job);
  if (has_ended(job) || job.deadline_seconds == kStopDeadlineSeconds) return success();
  return jobs.patch_spec(job, Json::object({{"activeDeadlineSeconds", kStopDeadlineSeconds}}));
}

// Ignores errors: the next reconcile tries again.
void move_queue(const api::Study& study, const kube::Job& job, JobClient& jobs) {
  if (job.metadata.deleted_ms != 0 || has_ended(job)) return;
  std::optional<Json> metadata = moved_queue(study.spec.trial, job);
  if (metadata) (void)jobs.patch_metadata(job, *std::move(metadata));
}

// Reads the log of an image without a reporter.
void read_log(const JobView& view, const api::Trial& trial, const api::Study& study,
              LogMetrics& logs, core::Run& run) {
  const std::string container = trial_container_of(view.job);
  const PodPtr pod = rank_zero_pod(view.pods);
  if (pod == nullptr) {
    const api::RunRecord* record = find_record(trial, run.id);
    // The pod is gone, so no more can be read than before.
    const LogReading reading = logs.recall(record != nullptr ? record->pod_uid : "");
    return add_output({reading, /*has_pod=*/false, /*ended=*/true, view.stop_asked}, run);
  }
  const bool ended = has_ended(*pod, container);
  if (!ended && !is_running(*pod, container)) return;  // it has printed nothing yet
  LogSource source{key_of(pod->metadata),
                   pod->metadata.uid,
                   container,
                   trial_group(trial.metadata.ns, trial.metadata.name),
                   trial.spec.study,
                   {}};
  source.metrics = runtime::metric_options(study);
  const LogReading reading = logs.read(source, ended);
  add_output({reading, /*has_pod=*/true, ended, view.stop_asked}, run);
}

}  // namespace

JobRuns::JobRuns(kube::Client& client, kube::Cache<kube::Job>& jobs, kube::Cache<kube::Pod>& pods,
                 control::Store& store, control::Clock& clock, JobOptions options,
                 const LogMetricsOptions& logs)
    : client_(client),
      jobs_(jobs),
      pods_(pods),
      store_(store),
      clock_(clock),
      options_(std::move(options)),
      pod_index_(pods),
      pending_(pod_index_, clock),
      job_client_(client, jobs, clock),
      prerequisites_(client, store, clock),
      gangs_({jobs, pods, job_client_, prerequisites_, pending_, clock}, options_.gang_timeout_ms),
      limits_(pod_index_, jobs, store, clock),
      observer_(client, pods, clock, options_),
      logs_(
          client, clock, [this](const std::string& trial) { notify(trial); }, logs) {
  jobs_.index_by([](const kube::Job& job) { return group_of(job); });
  pods_.index_by([](const kube::Pod& pod) { return group_of(pod); });
  jobs_.on_change([this](const auto& before, const auto& after) { job_changed(before, after); });
  pods_.on_change([this](const auto& before, const auto& after) { pod_changed(before, after); });
}

Status JobRuns::check(const api::Study& study) {
  FETTLE_ASSIGN(const JobOptions options, options_in_force(options_, study, clock_.now_ms()));
  FETTLE_TRY(check_template(client_, study, options));
  for (const TemplateWarning& warning : template_warnings(study)) {
    store_.record_event(event_of(study.metadata.ns, study.metadata.name), /*warning=*/true,
                        warning.reason, warning.message, clock_.now_ms());
  }
  return success();
}

// ---- Starting ----------------------------------------------------------------------------------

Status JobRuns::start(const api::Study& study, const api::Trial& trial, std::int64_t run) {
  if (job_client_.find(trial, run) != nullptr) return success();
  FETTLE_ASSIGN(JobOptions options, options_in_force(options_, study, clock_.now_ms()));
  options.concurrent_runs = jobs_.size();  // the more runs, the less often each one reports
  // Before build_job(), in which a missing profile is kInvalid and would fail the trial.
  FETTLE_ASSIGN(const std::optional<GpuPlacement> gpus,
                place_now(sized_for(study, trial), options));
  FETTLE_ASSIGN(const Json job, build_job(study, trial, run, options));
  // It waits for the end of an earlier run's pods. Only now, because a run that can never start is
  // refused at once, without waiting first.
  if (pending_.hold(trial, run, is_fenced(study))) return success();
  Status created = prerequisites_.ensure_for_study(study, gpus);
  if (created.ok()) created = job_client_.create(job, trial, run);
  if (created.ok()) {
    pending_.remove(name_of(trial, run));
    return created;
  }
  // The server accepted such a Job and such pods in check(): a policy added since refuses it, and
  // no configuration of a trial is to blame.
  if (created.error().code == ErrorCode::kInvalid) {
    return Error{ErrorCode::kUnavailable, created.error().message};
  }
  if (created.error().code != ErrorCode::kForbidden) return created;
  pending_.refuse(name_of(trial, run), trial.spec.workers,
                  "it is not admitted now: " + created.error().message);
  notify(trial_group(trial.metadata.ns, trial.metadata.name));  // without a Job no watch does
  return success();
}

// ---- Changing ----------------------------------------------------------------------------------

Status JobRuns::resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) {
  const JobPtr job = job_client_.find(trial, run);
  if (job == nullptr || job->completions == workers) return success();
  // After a deletion of the Job here, the controller starts the run again with the new size.
  if (is_suspended_by_queue(*job)) {
    // Kueue adapts the Workload of a suspended Job to the Job. Fewer workers than at its creation
    // need another Job, since its pods' environment has the world size of the creation.
    if (workers < workers_at_start(*job)) return remove(trial, run);
    return job_client_.resize(*job, workers);
  }
  const api::RunRecord* record = find_record(trial, run);
  const bool has_run = record != nullptr && record->running_ms != 0;
  // Its pods have the world size of the Job's creation in their environment, and would wait for all
  // of these workers.
  if (!has_run && gang_state(*job) != GangState::kNone) {
    return gangs_.return_run(*job, /*why=*/"", /*hold_ms=*/0);  // 0: it starts again at once
  }
  const bool grows = workers > job->completions;
  if (grows && !may_add_workers(*job, pods_.group(pod_group(*job)), clock_.now_ms())) {
    return success();  // the next reconcile tries again
  }
  return job_client_.resize(*job, workers);
}

Status JobRuns::stop(const api::Trial& trial, std::int64_t run) {
  pending_.remove(name_of(trial, run));  // without a Job, it is not observed any more
  const JobPtr job = job_client_.find(trial, run);
  // Without a Job, no watch notifies the controller.
  if (job == nullptr) notify(trial_group(trial.metadata.ns, trial.metadata.name));
  if (job == nullptr || job->metadata.deleted_ms != 0) return success();
  if (!queue_of(*job).empty()) return stop_queued(*job, job_client_);
  // A gang is marked as stopped, too, or it would be resumed when its turn came (gang.h).
  const GangState state = gang_state(*job);
  const bool unmarked_gang = state != GangState::kNone && state != GangState::kStopped;
  if (job->suspended && !unmarked_gang) return success();
  Json suspended = Json::object({{"suspend", true}});
  if (!unmarked_gang) return job_client_.patch_spec(*job, std::move(suspended));
  return job_client_.set_gang_state(*job, GangState::kStopped, std::move(suspended));
}

Status JobRuns::remove(const api::Trial& trial, std::int64_t run) {
  const JobPtr job = job_client_.find(trial, run);
  if (job == nullptr || job_client_.is_being_removed(*job)) return success();
  // Foreground: the Job stays until its last worker is gone, which shares checkpoints with the next
  // run's workers.
  const bool foreground = job->metadata.annotations.contains(kServiceAnnotation);
  FETTLE_TRY(job_client_.remove(*job, foreground));
  for (const auto& pod : pods_.group(pod_group(*job))) logs_.forget(pod->metadata.uid);
  return success();
}

Status JobRuns::remove_orphans(const std::string& ns, const std::string& trial) {
  for (const JobPtr& job : jobs_.group(trial_group(ns, trial))) {
    const api::Metadata& metadata = job->metadata;
    const bool is_ours = metadata.annotations.contains(kUntilStepAnnotation) &&
                         metadata.name == core::run_name(trial, run_of(*job).run);
    // Garbage collection deletes a Job that still has its owner reference.
    if (job->owner || metadata.deleted_ms != 0 || !is_ours) continue;
    FETTLE_TRY(job_client_.remove_with_pods(*job));
    store_.record_event(event_of(ns, kube::text_in(metadata.labels, core::kStudyLabel)),
                        /*warning=*/true, "OrphanedJob",
                        "Job " + metadata.name + " was left behind by trial " + trial +
                            ", which was deleted without it; it is deleted, with its pods",
                        clock_.now_ms());
  }
  return success();
}

// ---- Observing ---------------------------------------------------------------------------------

Result<std::vector<core::Run>> JobRuns::observe(const api::Trial& trial) {
  std::vector<core::Run> runs;
  const Result<api::Study> study = store_.get_study({trial.metadata.ns, trial.spec.study});
  // Without its Study the trial starts no other run that would need protection.
  const bool fenced = !study.ok() || is_fenced(*study);
  for (const JobPtr& job : jobs_.group(trial_group(trial.metadata.ns, trial.metadata.name))) {
    if (!is_owned_by(*job, trial)) continue;
    if (job_client_.is_being_removed(*job) && !observer_.has_live_pods(*job, fenced)) continue;
    FETTLE_ASSIGN(core::Run run, observe_job(*job, trial, study));
    runs.push_back(std::move(run));
  }
  pending_.append_to(runs, trial, fenced);
  return runs;
}

// Fails only if pods cannot be read. Writes that fail become the run's reason: the run can still be
// stopped and its end recorded.
Result<core::Run> JobRuns::observe_job(const kube::Job& job, const api::Trial& trial,
                                       const Result<api::Study>& study) {
  FETTLE_ASSIGN(const std::vector<PodPtr> pods, observer_.pods_of(job));
  const JobView view = observer_.view_of(job, trial, pods, !study.ok() || is_fenced(*study));
  core::Run run = observer_.read(view, trial);
  if (study.ok()) move_queue(*study, job, job_client_);
  // Only a run that waits needs these writes.
  const std::string error = advance(view, trial, study.ok() ? &*study : nullptr, run);
  if (run.state == core::RunState::kPending) runtime::add_sentence(run.reason, error);
  if (study.ok() && !study->spec.trial.trainer) read_log(view, trial, *study, logs_, run);
  return run;
}

// Makes the objects that the run still waits for, and advances its gang. Returns the first error in
// words, or "": a server that is away for a moment is not worth a condition.
std::string JobRuns::advance(const JobView& view, const api::Trial& trial, const api::Study* study,
                             const core::Run& run) {
  const kube::Job& job = view.job;
  std::optional<Error> first;
  const auto note = [&first](const Status& done) {
    if (!done.ok() && !first) first = done.error();
  };
  const bool waits = run.state == core::RunState::kPending;
  const bool over = run.state == core::RunState::kExited || view.stop_asked;
  // Also for the workers that an elastic run still misses. The number of running workers is absent
  // only if the run's Job was returned or the run has exited.
  const bool lacks = !over && run.running_workers.value_or(run.workers) < run.workers;
  if (lacks && study != nullptr) note(prerequisites_.ensure_service_of(job, *study));
  if (!over && view.pods.empty() && job.metadata.deleted_ms == 0) {
    note(prerequisites_.ensure_pod_group(job));
  }
  note(gangs_.reconcile(job));
  // This Job is in no line: the operator may have stopped between the two writes of return_run().
  const bool is_left = gang_state(job) == GangState::kReturned && domain_of(job).empty();
  if (is_left && job.metadata.deleted_ms == 0) note(job_client_.remove_with_pods(job));
  if (waits && is_incomplete_again(view)) note(unless_gone(gangs_.return_gang(job)));
  if (waits) note(unless_gone(return_unstarted(view)));
  // A pending run may wait for a claim that a user deleted.
  if (waits && study != nullptr) {
    note(prerequisites_.ensure_volume_claim(*study));
    note(ensure_resource_claim(sized_for(*study, trial)));
  }
  const std::int64_t since_ms = observer_.note_failing(job, first.has_value());
  if (!first) return "";
  // The API server may be away for a moment (kUnavailable); any other error is said at once.
  const bool lasts = view.now_ms - since_ms >= kPodsPatienceMs;
  return first->code != ErrorCode::kUnavailable || lasts ? first->message : "";
}

// Gives the node back if one of the run's pods has one and does not start.
Status JobRuns::return_unstarted(const JobView& view) {
  const std::string why = why_not_started(view);
  if (why.empty()) return success();
  return gangs_.return_run(view.job,
                           why + "; it gives its node back, and is tried again after " +
                               api::format_duration(static_cast<double>(kStartRetryMs) / 1000),
                           kStartRetryMs);
}

// A run that has a Job does not need the profiles: without them it is left as it is.
Status JobRuns::ensure_resource_claim(const api::Study& study) {
  const Result<JobOptions> options = options_in_force(options_, study, clock_.now_ms());
  if (!options.ok()) return success();
  const auto gpus = place_gpus(study.spec, options->gpu_profiles);
  return gpus.ok() && *gpus ? prerequisites_.ensure_resource_claim(study, **gpus) : success();
}

// ---- Capacity and progress ---------------------------------------------------------------------

core::Capacity JobRuns::capacity(const api::Study& study) {
  core::Capacity capacity;
  capacity.place = api::Place::kCluster;
  add_gpus(capacity, study, options_, clock_.now_ms());
  limits_.add_to(capacity, study);
  return capacity;
}

Status JobRuns::check_progress(const api::Trial& trial) {
  for (const JobPtr& job : jobs_.group(trial_group(trial.metadata.ns, trial.metadata.name))) {
    if (!is_owned_by(*job, trial) || !is_suspended_by_queue(*job)) continue;
    if (job->metadata.deleted_ms != 0 || job_client_.is_being_removed(*job)) continue;
    FETTLE_TRY(observer_.check_active(*job, trial));
  }
  return success();
}

// ---- Notifying ---------------------------------------------------------------------------------

void JobRuns::watch(std::function<void(const std::string& trial)> listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void JobRuns::job_changed(const JobPtr& before, const JobPtr& after) {
  const kube::Job& job = after != nullptr ? *after : *before;
  gangs_.job_changed(job, /*gone=*/after == nullptr);
  notify(group_of(job));
  if (after != nullptr) return;
  const std::string& uid = job.metadata.uid;
  job_client_.forget(uid);
  prerequisites_.forget(uid);
  observer_.forget(uid);
  // The Job's end makes room, in a quota say: the run that was refused first is tried again.
  const std::optional<RunName> next = pending_.release_one(job.metadata.ns);
  if (next) notify(trial_group(next->ns, next->trial));
}

void JobRuns::pod_changed(const PodPtr& before, const PodPtr& after) {
  pod_index_.update(before, after);
  const api::Metadata& metadata = (after != nullptr ? after : before)->metadata;
  const std::string trial = kube::text_in(metadata.labels, kTrialLabel);
  if (after == nullptr) pending_.pod_gone(metadata.ns, trial);
  notify(trial_group(metadata.ns, trial));
}

void JobRuns::notify(const std::string& trial) {
  std::function<void(const std::string&)> listener;
  {
    const std::lock_guard lock(mutex_);
    listener = listener_;
  }
  if (listener) listener(trial);
}

}  // namespace fettle::kubernetes
