#include "runtime/kubernetes/run/job_runs.h"

#include <algorithm>
#include <utility>

#include "core/elastic.h"
#include "core/names.h"
#include "kube/json_path.h"
#include "kube/labels.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/job/queue.h"
#include "runtime/kubernetes/job/rank_ends.h"
#include "runtime/kubernetes/job/run_of_job.h"
#include "runtime/kubernetes/log/run_output.h"
#include "runtime/kubernetes/pod/claim.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/run/template_check.h"
#include "runtime/sentences.h"

namespace fettle::kubernetes {
namespace {

using core::RunState;

bool is_stop_asked(const api::Trial& trial, std::int64_t run) {
  const api::RunRecord* record = find_record(trial, run);
  return record != nullptr && (record->stopping || record->outcome);
}

// The number of consecutive runs right before `run` that nodes refused.
int count_refusals(const api::Trial& trial, std::int64_t run) {
  int count = 0;
  for (auto record = trial.status.runs.rbegin(); record != trial.status.runs.rend(); ++record) {
    if (record->run >= run) continue;
    if (!was_refused(record->message)) break;
    ++count;
  }
  return count;
}

// Whether the trainer has already reported the contents of its termination message.
bool is_reported(const api::Trial& trial, const api::Report& words) {
  const auto& known = trial.status.report;
  return known && known->step >= words.step && known->final_result >= words.final_result;
}

// Whether its program writes no checkpoint once another run of the trial does, as the built-in
// trainer (CheckpointFence).
bool is_fenced(const api::Study& study) { return study.spec.trial.trainer.has_value(); }

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
      logs_(
          client, clock, [this](const std::string& trial) { notify(trial); }, logs) {
  jobs_.index_by([](const kube::Job& job) { return group_of(job); });
  pods_.index_by([](const kube::Pod& pod) { return group_of(pod); });
  jobs_.on_change(
      [this](const JobPtr& before, const JobPtr& after) { job_changed(before, after); });
  pods_.on_change([this](const auto& before, const auto& after) {
    const api::Metadata& metadata = (after != nullptr ? after : before)->metadata;
    const std::string trial = kube::text_in(metadata.labels, kTrialLabel);
    index_pod(metadata, trial, after != nullptr && !after->unschedulable.empty(), after == nullptr);
    if (after == nullptr) forget_held(metadata.ns, trial);
    notify(metadata.ns, trial);
  });
}

JobRuns::~JobRuns() = default;

Status JobRuns::check(const api::Study& study) {
  FETTLE_ASSIGN(const JobOptions options, options_for(study));
  FETTLE_TRY(check_template(client_, study, options));
  warn_of_volume(study);
  warn_of_metrics(study);
  return success();
}

void JobRuns::warn_of_metrics(const api::Study& study) {
  if (!study.spec.trial.metrics) return;
  const std::string warning = runtime::metrics_filter_warning(*study.spec.trial.metrics);
  if (warning.empty()) return;
  store_.record_event({control::Kind::kStudy, {study.metadata.ns, study.metadata.name}, ""},
                      /*warning=*/true, "MetricsMissNaN", warning, clock_.now_ms());
}

void JobRuns::warn_of_volume(const api::Study& study) {
  if (!makes_claim(study) || study.spec.budget.parallelism <= 1) return;
  const std::string& mode = study.spec.trial.checkpoints->access_mode;
  if (mode != "ReadWriteOnce" && mode != "ReadWriteOncePod") return;
  store_.record_event({control::Kind::kStudy, {study.metadata.ns, study.metadata.name}, ""},
                      /*warning=*/true, "OneNodeVolume",
                      "its checkpoints are on a " + mode + " volume and up to " +
                          std::to_string(study.spec.budget.parallelism) +
                          " trials run at once: on other nodes than the first they wait for the "
                          "volume; use spec.trial.checkpoints.accessMode ReadWriteMany, or keep "
                          "them on one node",
                      clock_.now_ms());
}

// ---- Starting ----------------------------------------------------------------------------------

Status JobRuns::start(const api::Study& study, const api::Trial& trial, std::int64_t run) {
  if (find_job(trial, run) != nullptr) return success();
  FETTLE_ASSIGN(JobOptions options, options_for(study));
  options.runs_beside = jobs_.size();
  FETTLE_ASSIGN(const std::optional<GpuPlacement> gpus,
                place_now(sized_for(study, trial), options));
  FETTLE_ASSIGN(const Json job, build_job(study, trial, run, options));
  // Only now, because a run that can never start is refused at once, without waiting first.
  if (!why_held(trial, run, is_fenced(study)).empty()) {
    const std::lock_guard lock(mutex_);
    held_.insert(name_of(trial, run));
    return success();
  }
  Status created = prepare(study, gpus);
  if (created.ok()) created = create(job, trial, run);
  if (created.ok()) return created;
  // The server accepted such a Job and such pods in check(): a policy added since refuses it, and
  // no configuration of a trial is to blame.
  if (created.error().code == ErrorCode::kInvalid) {
    return Error{ErrorCode::kUnavailable, created.error().message};
  }
  if (created.error().code != ErrorCode::kForbidden) return created;
  {
    const std::lock_guard lock(mutex_);
    refusals_.add(name_of(trial, run), trial.spec.workers,
                  "it is not admitted now: " + created.error().message, clock_.now_ms());
  }
  notify(trial.metadata.ns, trial.metadata.name);  // without a Job no watch does
  return success();
}

// Names the pod of an earlier run that may still write checkpoints, in its grace period after its
// Job was deleted; "" = none.
std::string JobRuns::why_held(const api::Trial& trial, std::int64_t run, bool fenced) const {
  if (run == 0) return "";
  const std::int64_t now_ms = clock_.now_ms();
  for (const PodPtr& pod : pods_of_trial(trial)) {
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

// Adds the trial's held runs: started without a Job, since a pod of an earlier run may still write
// checkpoints. A run that need not wait any longer is left out, so that the controller starts it
// again.
void JobRuns::add_held(const api::Trial& trial, bool fenced, std::vector<core::Run>& runs) {
  std::vector<RunName> held;
  {
    const std::lock_guard lock(mutex_);
    auto name = held_.lower_bound(name_of(trial, 0));
    for (; name != held_.end() && name->uid == trial.metadata.uid; ++name) held.push_back(*name);
  }
  for (const RunName& name : held) {  // without the mutex, which why_held() takes
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

// Called when a pod of the trial is gone: its runs may have waited for this pod, and the trial may
// be gone, too. A run that still has to wait is started again, and held again.
void JobRuns::forget_held(const std::string& ns, const std::string& trial) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const RunName& run) { return run.ns == ns && run.trial == trial; });
}

Status JobRuns::create(const Json& job, const api::Trial& trial, std::int64_t run) {
  const std::string name = core::run_name(trial.metadata.name, run);
  const Result<kube::Written> written = client_.create(kube::kJobs, trial.metadata.ns, job);
  if (!written.ok()) {
    if (written.error().code != ErrorCode::kAlreadyExists) return written.error();
    return adopt(trial, name);
  }
  {
    const std::lock_guard lock(mutex_);
    refusals_.remove(name_of(trial, run));
  }
  return cache_job(written->object);
}

// Adopts a Job of that name that the trial owns: an earlier attempt at this start created it.
Status JobRuns::adopt(const api::Trial& trial, const std::string& name) {
  FETTLE_ASSIGN(const Json object, client_.get(kube::kJobs, {trial.metadata.ns, name}));
  FETTLE_ASSIGN(const kube::Job job, kube::read_job(object));
  if (!is_owned_by(job, trial)) {
    return Error{ErrorCode::kAlreadyExists, "a Job " + name + " exists in namespace " +
                                                trial.metadata.ns +
                                                " and is not Fettle's; delete it or rename it"};
  }
  if (job.metadata.deleted_ms != 0) {
    return Error{ErrorCode::kUnavailable, "the Job " + name + " is still being deleted"};
  }
  return cache_job(object);
}

Status JobRuns::cache_job(const Json& object) {
  FETTLE_ASSIGN(kube::Job job, kube::read_job(object));
  jobs_.put(std::move(job));
  return success();
}

// ---- Changing ----------------------------------------------------------------------------------

JobPtr JobRuns::find_job(const api::Trial& trial, std::int64_t run) const {
  const JobPtr job = jobs_.get({trial.metadata.ns, core::run_name(trial.metadata.name, run)});
  return job != nullptr && is_owned_by(*job, trial) ? job : nullptr;
}

Status JobRuns::patch_spec(const kube::Job& job, Json spec) {
  const Json patch = Json::object(
      {{"metadata", Json::object({{"uid", job.metadata.uid}})}, {"spec", std::move(spec)}});
  const auto written = client_.patch(kube::kJobs, key_of(job.metadata), "", patch);
  if (!written.ok()) return unless_gone(written.error());
  return cache_job(written->object);
}

Status JobRuns::resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) {
  const JobPtr job = find_job(trial, run);
  if (job == nullptr || job->completions == workers) return success();
  if (job->suspended && !queue_of(*job).empty()) return resize_queued(trial, *job, run, workers);
  const api::RunRecord* record = find_record(trial, run);
  const bool has_run = record != nullptr && record->running_ms != 0;
  // Its pods have the world size of the Job's creation in their environment, and would wait for all
  // of these workers.
  if (!has_run && gang_state(*job) != GangState::kNone) return return_gang(*job, /*hold_ms=*/0);
  // While a removed worker has not ended, growing would give it its rank back, and its end would be
  // the end of the run. While the others end, a new worker would find no peers.
  const bool grows = workers > job->completions;
  if (grows && (has_surplus_workers(*job) || has_begun_to_end(*job))) return success();
  return patch_spec(*job, Json::object({{"completions", workers}, {"parallelism", workers}}));
}

Status JobRuns::stop(const api::Trial& trial, std::int64_t run) {
  {
    const std::lock_guard lock(mutex_);
    refusals_.remove(name_of(trial, run));
    held_.erase(name_of(trial, run));
  }
  const JobPtr job = find_job(trial, run);
  // Without a Job, no watch notifies the controller.
  if (job == nullptr) notify(trial.metadata.ns, trial.metadata.name);
  if (job == nullptr || job->metadata.deleted_ms != 0) return success();
  if (!queue_of(*job).empty()) return stop_queued(*job);
  // A gang is marked as stopped, too, or it would be resumed when its turn came (gang.h).
  const GangState state = gang_state(*job);
  const bool unmarked_gang = state != GangState::kNone && state != GangState::kStopped;
  if (job->suspended && !unmarked_gang) return success();
  Json suspended = Json::object({{"suspend", true}});
  if (!unmarked_gang) return patch_spec(*job, std::move(suspended));
  return set_gang_state(*job, GangState::kStopped, std::move(suspended));
}

// Its pods get SIGTERM and their grace period; the Job remains visible until the last of them is
// gone.
Status JobRuns::delete_with_pods(const kube::Job& job) {
  kube::RemoveOptions options;
  options.uid = job.metadata.uid;
  options.foreground = true;
  return delete_job(job, options);
}

// Believes that a Job is gone only if it cannot be read: a proxy may have answered, and a Job that
// is believed gone is never deleted again.
Status JobRuns::delete_job(const kube::Job& job, const kube::RemoveOptions& options) {
  Status removed = client_.remove(kube::kJobs, key_of(job.metadata), options);
  if (removed.ok()) return removed;
  const ErrorCode code = removed.error().code;
  if (code != ErrorCode::kNotFound && code != ErrorCode::kConflict) return removed;
  const Result<Json> there = client_.get(kube::kJobs, key_of(job.metadata));
  if (!there.ok()) return unless_gone(there.error());
  if (kube::text_at(*there, {"metadata", "uid"}) != job.metadata.uid) return success();
  return Error{ErrorCode::kUnavailable, removed.error().message};
}

Status JobRuns::remove(const api::Trial& trial, std::int64_t run) {
  const JobPtr job = find_job(trial, run);
  if (job == nullptr) return success();
  if (is_being_removed(*job)) return success();
  kube::RemoveOptions options;
  options.uid = job->metadata.uid;
  // Foreground: the Job stays until its last worker is gone, which shares checkpoints with the next
  // run's workers.
  options.foreground = job->metadata.annotations.count(kServiceAnnotation) > 0;
  {
    // Before the call, because the watch event, which clears this, may precede the answer.
    const std::lock_guard lock(mutex_);
    removed_.insert(options.uid);
  }
  Status done = delete_job(*job, options);
  if (!done.ok()) {
    const std::lock_guard lock(mutex_);
    removed_.erase(options.uid);
    return done;
  }
  for (const auto& pod : pods_.group(pod_group(*job))) logs_.forget(pod->metadata.uid);
  return success();
}

// ---- Observing ---------------------------------------------------------------------------------

Result<std::vector<core::Run>> JobRuns::observe(const api::Trial& trial) {
  std::vector<core::Run> runs;
  const Result<api::Study> study = store_.get_study({trial.metadata.ns, trial.spec.study});
  const bool fenced = !study.ok() || is_fenced(*study);
  for (const JobPtr& job : jobs_.group(trial_group(trial.metadata.ns, trial.metadata.name))) {
    if (!is_owned_by(*job, trial)) continue;
    if (is_removed(*job, fenced)) continue;
    FETTLE_ASSIGN(core::Run run, observe_one(*job, trial, study));
    runs.push_back(std::move(run));
  }
  add_held(trial, fenced, runs);
  const std::lock_guard lock(mutex_);
  for (core::Run& refused : refusals_.of_trial(name_of(trial, 0), clock_.now_ms())) {
    // The Job of a run decides its state, even if the run was refused before.
    const auto known = std::ranges::find(runs, refused.id, &core::Run::id);
    if (known == runs.end()) runs.push_back(std::move(refused));
  }
  return runs;
}

// Ends Jobs of a trial that was deleted without them (kubectl delete --cascade=orphan): nobody else
// would stop them. Jobs with our labels but another owner or name are left alone.
Status JobRuns::remove_orphans(const std::string& ns, const std::string& trial) {
  for (const JobPtr& job : jobs_.group(trial_group(ns, trial))) {
    const api::Metadata& metadata = job->metadata;
    const bool is_ours = metadata.annotations.contains(kUntilStepAnnotation) &&
                         metadata.name == core::run_name(trial, run_of(*job).run);
    if (job->owner || metadata.deleted_ms != 0 || !is_ours) continue;
    FETTLE_TRY(delete_with_pods(*job));
    store_.record_event(
        {control::Kind::kStudy, {ns, kube::text_in(metadata.labels, core::kStudyLabel)}, ""},
        /*warning=*/true, "OrphanedJob",
        "Job " + metadata.name + " was left behind by trial " + trial +
            ", which was deleted without it; it is deleted, with its pods",
        clock_.now_ms());
  }
  return success();
}

bool JobRuns::is_being_removed(const kube::Job& job) {
  const std::lock_guard lock(mutex_);
  return removed_.count(job.metadata.uid) > 0;
}

// Whether the operator deleted it and no pod of it is alive.
bool JobRuns::is_removed(const kube::Job& job, bool fenced) {
  if (!is_being_removed(job)) return false;
  const std::string container = trial_container_of(job);
  const std::vector<PodPtr> pods = pods_.group(pod_group(job));
  return std::ranges::none_of(pods, [&](const PodPtr& pod) {
    return may_be_alive(*pod, container, fenced, clock_.now_ms());
  });
}

// The pods of a Job. Jobs and pods are separate watches: if the Job has ended and the watch of pods
// lags, pods are listed, because the trial's last report is only in its pod.
Result<std::vector<PodPtr>> JobRuns::pods_of(const kube::Job& job) {
  std::vector<PodPtr> pods = pods_.group(pod_group(job));
  const std::string container = trial_container_of(job);
  const auto ended =
      std::ranges::count_if(pods, [&](const PodPtr& pod) { return has_ended(*pod, container); });
  if (!has_ended(job) || ended >= job.completions) return pods;
  kube::ListOptions of_trial;
  of_trial.label_selector =
      std::string(kTrialLabel) + "=" + kube::text_in(job.metadata.labels, kTrialLabel);
  FETTLE_ASSIGN(const std::vector<Json> listed,
                client_.list(kube::kPods, job.metadata.ns, of_trial));
  pods.clear();
  for (const Json& object : listed) {
    FETTLE_ASSIGN(kube::Pod pod, kube::read_pod(object));
    if (group_of(pod) != pod_group(job)) continue;
    pods.push_back(std::make_shared<const kube::Pod>(std::move(pod)));
  }
  return pods;
}

// Fails only if pods cannot be read. Writes that fail become the run's reason: the run can still be
// stopped and its end recorded.
Result<core::Run> JobRuns::observe_one(const kube::Job& job, const api::Trial& trial,
                                       const Result<api::Study>& study) {
  FETTLE_ASSIGN(const std::vector<PodPtr> pods, pods_of(job));
  const JobView view = view_of(job, trial, pods, !study.ok() || is_fenced(*study));
  core::Run run = read_run(view, trial);
  if (study.ok()) move_queue(*study, job);
  const std::string trouble = help_to_start(view, trial, study.ok() ? &*study : nullptr, run);
  if (run.state == RunState::kPending) runtime::add_sentence(run.reason, trouble);
  if (study.ok() && !study->spec.trial.trainer) read_log(job, *study, trial, pods, run);
  return run;
}

JobView JobRuns::view_of(const kube::Job& job, const api::Trial& trial,
                         const std::vector<PodPtr>& pods, bool fenced) {
  const std::int64_t number = run_of(job).run;
  JobView view{job, pods, is_stop_asked(trial, number), clock_.now_ms()};
  view.refused_before = count_refusals(trial, number);
  view.gang_timeout_ms = options_.gang_timeout_ms;
  view.start_timeout_ms = options_.start_timeout_ms;
  view.fenced = fenced;
  const api::RunRecord* record = find_record(trial, number);
  if (record != nullptr && record->running_ms != 0) view.first_uid = record->pod_uid;
  view.queue = queue_wait(job, trial, record);
  return view;
}

core::Run JobRuns::read_run(JobView view, const api::Trial& trial) {
  const std::string container = trial_container_of(view.job);
  const bool ending =
      std::ranges::any_of(view.pods, [&](const PodPtr& pod) { return is_ending(*pod, container); });
  core::Run run;
  {
    const std::lock_guard lock(mutex_);
    RunClock& run_clock = run_clocks_[view.job.metadata.uid];
    view.ending_ms = run_clock.see_ending(ending, view.now_ms);
    view.resumed_ms = run_clock.see_resumed(view.job.suspended, view.now_ms);
    run = run_of_job(view);
    run_clock.correct(run, trial.status.report ? trial.status.report->at_ms : 0, view.now_ms);
  }
  if (run.report && is_reported(trial, *run.report)) run.report.reset();
  return run;
}

// ---- Logs --------------------------------------------------------------------------------------

// Reads the log of an image without a reporter.
void JobRuns::read_log(const kube::Job& job, const api::Study& study, const api::Trial& trial,
                       const std::vector<PodPtr>& pods, core::Run& run) {
  const std::string container = trial_container_of(job);
  const PodPtr pod = rank_zero_pod(pods);
  const bool stop_asked = is_stop_asked(trial, run.id);
  if (pod == nullptr) {
    const api::RunRecord* record = find_record(trial, run.id);
    const LogReading reading = logs_.recall(record != nullptr ? record->pod_uid : "");
    return add_output({reading, /*has_pod=*/false, /*ended=*/true, stop_asked}, run);
  }
  const bool ended = has_ended(*pod, container);
  if (!ended && !is_running(*pod, container)) return;
  LogSource source{key_of(pod->metadata),
                   pod->metadata.uid,
                   container,
                   trial_group(trial.metadata.ns, trial.metadata.name),
                   trial.spec.study,
                   {}};
  source.metrics = runtime::metric_options(study);
  const LogReading reading = logs_.read(source, ended);
  add_output({reading, /*has_pod=*/true, ended, stop_asked}, run);
}

void JobRuns::stop_reading() { logs_.stop(); }

core::Capacity JobRuns::capacity(const api::Study& study) {
  core::Capacity capacity;
  capacity.gpu = gpu_choice(study);
  capacity.gpu_memory = most_gpu_memory(study);
  capacity.place = api::Place::kCluster;
  if (options_.gpu_catalogue) capacity.gpu_changed_ms = options_.gpu_catalogue->changed_ms();
  if (core::sizes_itself(study.spec)) add_waiting_elsewhere(study, capacity);
  capacity.may_grow = may_grow_in_queue(study);
  return capacity;
}

void JobRuns::watch(std::function<void(const std::string& trial)> listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

// ---- Notifying ---------------------------------------------------------------------------------

void JobRuns::job_changed(const JobPtr& before, const JobPtr& after) {
  const api::Metadata& metadata = (after != nullptr ? after : before)->metadata;
  const kube::Job& job = after != nullptr ? *after : *before;
  // A Job is in line for nodes as long as its gang is, or may become, incomplete; no domain: no
  // gang.
  if (const std::string domain = domain_of(job); !domain.empty()) {
    const std::lock_guard lock(mutex_);
    std::set<kube::ObjectKey>& line = gangs_[domain];
    if (after != nullptr && is_in_queue(job)) line.insert(key_of(metadata));
    if (after == nullptr || !is_in_queue(job)) line.erase(key_of(metadata));
    if (line.empty()) gangs_.erase(domain);
  }
  notify(metadata.ns, kube::text_in(metadata.labels, kTrialLabel));
  if (after != nullptr) return;
  std::optional<RunName> next;
  {
    const std::lock_guard lock(mutex_);
    removed_.erase(metadata.uid);
    // All keys that begin with "uid/"; '0' follows '/'.
    ensured_until_.erase(ensured_until_.lower_bound(metadata.uid + "/"),
                         ensured_until_.lower_bound(metadata.uid + "0"));
    run_clocks_.erase(metadata.uid);
    helpless_since_.erase(metadata.uid);
    workloads_.erase(metadata.uid);
    // The Job's end makes room, in a quota say: the run that was refused first is tried again.
    next = refusals_.release_one(metadata.ns);
  }
  if (next) notify(next->ns, next->trial);
}

void JobRuns::notify(const std::string& ns, const std::string& trial) {
  notify(trial_group(ns, trial));
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
