#include "runtime/kubernetes/job_runs.h"

#include <algorithm>
#include <utility>

#include "core/elastic.h"
#include "core/names.h"
#include "kube/json_path.h"
#include "kube/labels.h"
#include "runtime/kubernetes/claim.h"
#include "runtime/kubernetes/ownership.h"
#include "runtime/kubernetes/pod_group.h"
#include "runtime/kubernetes/queue.h"
#include "runtime/kubernetes/rank_ends.h"
#include "runtime/kubernetes/run_of_job.h"
#include "runtime/kubernetes/template_check.h"

namespace fettle::kubernetes {
namespace {

using core::RunState;

// Services and claims are not watched: each is created again, if missing, at this interval.
constexpr std::int64_t kTrustMs = 60'000;
// Entries of owners that were not reconciled for this long are dropped.
constexpr std::int64_t kForgetMs = 3'600'000;

const api::RunRecord* find_record(const api::Trial& trial, std::int64_t run) {
  const auto& records = trial.status.runs;
  const auto found = std::ranges::find(records, run, &api::RunRecord::run);
  return found == records.end() ? nullptr : &*found;
}

bool is_stop_asked(const api::Trial& trial, std::int64_t run) {
  const api::RunRecord* record = find_record(trial, run);
  return record != nullptr && (record->stopping || record->outcome);
}

// Runs right before `run` that nodes refused.
int count_refusals(const api::Trial& trial, std::int64_t run) {
  int count = 0;
  for (auto record = trial.status.runs.rbegin(); record != trial.status.runs.rend(); ++record) {
    if (record->run >= run) continue;
    if (!was_refused(record->message)) break;
    ++count;
  }
  return count;
}

// Whether the trainer has already reported what its termination message says.
bool is_reported(const api::Trial& trial, const api::Report& words) {
  const auto& known = trial.status.report;
  return known && known->step >= words.step && known->final_result >= words.final_result;
}

// By which ensure() knows what `owner` has one of.
std::string key_of_owned(const api::Metadata& owner, const kube::Resource& resource) {
  return owner.uid + "/" + std::string(resource.plural);
}

}  // namespace

JobRuns::JobRuns(kube::Client& client, kube::Cache<kube::Job>& jobs, kube::Cache<kube::Pod>& pods,
                 control::Store& store, control::Clock& clock, JobOptions options)
    : client_(client),
      jobs_(jobs),
      pods_(pods),
      store_(store),
      clock_(clock),
      options_(std::move(options)),
      logs_(client, clock, [this](const std::string& trial) { notify(trial); }) {
  jobs_.index_by([](const kube::Job& job) { return group_of(job); });
  pods_.index_by([](const kube::Pod& pod) { return group_of(pod); });
  jobs_.on_change(
      [this](const JobPtr& before, const JobPtr& after) { job_changed(before, after); });
  pods_.on_change([this](const auto& before, const auto& after) {
    const api::Metadata& metadata = (after != nullptr ? after : before)->metadata;
    const std::string trial = kube::text_in(metadata.labels, kTrialLabel);
    if (after == nullptr) forget_held(metadata.ns, trial);
    notify(metadata.ns, trial);
  });
}

JobRuns::~JobRuns() = default;

Status JobRuns::check(const api::Study& study) {
  FETTLE_ASSIGN(const JobOptions options, options_for(study));
  FETTLE_TRY(check_template(client_, study, options));
  warn_of_volume(study);
  return success();
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
  if (const JobPtr job = find_job(trial, run)) return ensure_company(*job);
  FETTLE_ASSIGN(const JobOptions options, options_for(study));
  FETTLE_ASSIGN(const std::optional<GpuPlacement> gpus,
                place_now(sized_for(study, trial), options));
  FETTLE_ASSIGN(const Json job, build_job(study, trial, run, options));
  // Only now: what can never run is refused at once, and does not wait first.
  if (!why_held(trial, run).empty()) {
    const std::lock_guard lock(mutex_);
    held_.insert(name_of(trial, run));
    return success();
  }
  Status created = ensure_claim(study);
  if (created.ok() && gpus) created = ensure_gpu_claim(study, *gpus);
  if (created.ok()) created = create(job, trial, run);
  if (created.ok() || created.error().code != ErrorCode::kForbidden) return created;
  {
    const std::lock_guard lock(mutex_);
    refusals_.add(name_of(trial, run), trial.spec.workers,
                  "it is not admitted now: " + created.error().message, clock_.now_ms());
  }
  notify(trial.metadata.ns, trial.metadata.name);  // without a Job no watch does
  return success();
}

// Which pod of an earlier run may still write checkpoints, in its grace period after its Job was
// deleted. "" = none.
std::string JobRuns::why_held(const api::Trial& trial, std::int64_t run) const {
  if (run == 0) return "";
  for (const PodPtr& pod : pods_.all()) {
    const api::Metadata& metadata = pod->metadata;
    const bool of_other_run = metadata.ns == trial.metadata.ns &&
                              kube::text_in(metadata.labels, kTrialLabel) == trial.metadata.name &&
                              kube::text_in(metadata.labels, kRunLabel) != std::to_string(run);
    // Of the pod as a whole: the Job that names the container of its trial may be gone.
    if (of_other_run && may_write(*pod, /*container=*/"", clock_.now_ms())) {
      return "pod " + metadata.name + " of an earlier run has not ended yet";
    }
  }
  return "";
}

// Adds the trial's held runs: started without a Job, since a pod of an earlier run may still write
// checkpoints. One that need not wait any longer is left out, so that the controller starts it
// again.
void JobRuns::add_held(const api::Trial& trial, std::vector<core::Run>& runs) {
  std::vector<RunName> held;
  {
    const std::lock_guard lock(mutex_);
    auto name = held_.lower_bound(name_of(trial, 0));
    for (; name != held_.end() && name->uid == trial.metadata.uid; ++name) held.push_back(*name);
  }
  for (const RunName& name : held) {  // without the mutex: why_held() reads every pod
    core::Run run;
    run.id = name.run;
    run.workers = trial.spec.workers;
    run.reason = why_held(trial, name.run);
    if (!run.reason.empty()) {
      runs.push_back(std::move(run));
      continue;
    }
    const std::lock_guard lock(mutex_);
    held_.erase(name);
  }
}

// When a pod of the trial is gone: it may have been the one that its runs waited for, and the trial
// may be gone, too. A run that still has to wait is started again, and held again.
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

// A Job of that name that the trial owns was created by an earlier attempt at this start.
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
  const kube::Job kept = job;
  jobs_.put(std::move(job));
  return ensure_company(kept);
}

// Not before the Job, which owns them. A crash in between is made up for by observe().
Status JobRuns::ensure_company(const kube::Job& job) {
  FETTLE_TRY(ensure_service(job));
  return ensure_pod_group(job);
}

// The Service comes after the Job, which owns it. observe() repeats this after a crash in between.
Status JobRuns::ensure_service(const kube::Job& job) {
  if (job.metadata.annotations.count(kServiceAnnotation) == 0) return success();
  FETTLE_TRY(ensure(kube::kServices, job.metadata.ns, key_of_owned(job.metadata, kube::kServices),
                    [&] { return build_service(job); }));
  return success();
}

// In the newest version that the cluster has.
Status JobRuns::ensure_pod_group(const kube::Job& job) {
  Status made = success();
  for (const kube::Resource& resource : pod_group_resources(pod_group_of(job))) {
    const auto done = ensure(resource, job.metadata.ns, key_of_owned(job.metadata, resource),
                             [&] { return build_pod_group(job, resource); });
    made = done.ok() ? success() : Status(done.error());
    if (made.ok() || made.error().code != ErrorCode::kNotFound) break;
  }
  return made;
}

// The claim's name contains the Study's uid, so an existing one belongs to this Study.
Status JobRuns::ensure_claim(const api::Study& study) {
  if (!makes_claim(study)) return success();
  FETTLE_ASSIGN(const bool is_again, ensure(kube::kClaims, study.metadata.ns,
                                            key_of_owned(study.metadata, kube::kClaims),
                                            [&] { return build_claim(study); }));
  if (!is_again) return success();
  store_.record_event({control::Kind::kStudy, {study.metadata.ns, study.metadata.name}, ""},
                      /*warning=*/true, "ClaimMadeAgain",
                      "its claim " + claim_of(study) +
                          " was gone and is made again; checkpoints that were on it are lost",
                      clock_.now_ms());
  return success();
}

// Creates an object that a Job needs, known here as `key`, unless it was ensured recently. True if
// this process has ensured it before and had to create it again.
Result<bool> JobRuns::ensure(const kube::Resource& resource, const std::string& ns,
                             const std::string& key, const std::function<Json()>& build) {
  const std::int64_t now_ms = clock_.now_ms();
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    const auto served = ensured_until_.find(key);
    known = served != ensured_until_.end();
    if (known && now_ms < served->second) return false;
  }
  const auto written = client_.create(resource, ns, build());
  if (!written.ok() && written.error().code != ErrorCode::kAlreadyExists) return written.error();
  const std::lock_guard lock(mutex_);
  std::erase_if(ensured_until_, [&](const auto& one) { return one.second + kForgetMs < now_ms; });
  ensured_until_[key] = now_ms + kTrustMs;
  return known && written.ok();
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
  // Its pods have the world size of the Job's creation in their environment, and would wait for
  // all.
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
  // Without a Job, no watch tells the controller.
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

// Its pods get SIGTERM and their grace period; the Job is seen until the last of them is gone.
Status JobRuns::delete_with_pods(const kube::Job& job) {
  kube::RemoveOptions options;
  options.uid = job.metadata.uid;
  options.foreground = true;
  return unless_gone(client_.remove(kube::kJobs, key_of(job.metadata), options));
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
  Status done = unless_gone(client_.remove(kube::kJobs, key_of(job->metadata), options));
  if (!done.ok()) {
    const std::lock_guard lock(mutex_);
    removed_.erase(options.uid);
    return done;
  }
  for (const auto& pod : pods_.group(options.uid)) logs_.forget(pod->metadata.uid);
  return success();
}

// ---- Observing ---------------------------------------------------------------------------------

Result<std::vector<core::Run>> JobRuns::observe(const api::Trial& trial) {
  std::vector<core::Run> runs;
  for (const JobPtr& job : jobs_.group(trial_group(trial.metadata.ns, trial.metadata.name))) {
    if (!is_owned_by(*job, trial)) continue;
    if (is_removed(*job)) continue;
    FETTLE_ASSIGN(core::Run run, observe_one(*job, trial));
    runs.push_back(std::move(run));
  }
  add_held(trial, runs);
  const std::lock_guard lock(mutex_);
  for (core::Run& refused : refusals_.of_trial(name_of(trial, 0), clock_.now_ms())) {
    // A run with a Job is what the Job says, also if it was refused before.
    const auto known = std::ranges::find(runs, refused.id, &core::Run::id);
    if (known == runs.end()) runs.push_back(std::move(refused));
  }
  return runs;
}

bool JobRuns::is_being_removed(const kube::Job& job) {
  const std::lock_guard lock(mutex_);
  return removed_.count(job.metadata.uid) > 0;
}

// Deleted by the operator, and no pod of it is alive.
bool JobRuns::is_removed(const kube::Job& job) {
  if (!is_being_removed(job)) return false;
  const std::string container = trial_container_of(job);
  const std::vector<PodPtr> pods = pods_.group(job.metadata.uid);
  return std::ranges::none_of(
      pods, [&](const PodPtr& pod) { return may_be_alive(*pod, container, clock_.now_ms()); });
}

// The pods of a Job. Jobs and pods are separate watches: if the Job has ended and the watch of pods
// lags, pods are listed, because the trial's last report is only in its pod.
Result<std::vector<PodPtr>> JobRuns::pods_of(const kube::Job& job) {
  std::vector<PodPtr> pods = pods_.group(job.metadata.uid);
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
    if (group_of(pod) != job.metadata.uid) continue;
    pods.push_back(std::make_shared<const kube::Pod>(std::move(pod)));
  }
  return pods;
}

Result<core::Run> JobRuns::observe_one(const kube::Job& job, const api::Trial& trial) {
  // Missing only after a crash between the two creations. An error is ignored: the next reconcile
  // retries.
  (void)ensure_service(job);
  FETTLE_TRY(ensure_pod_group(job));  // before its pods
  FETTLE_TRY(reconcile_gangs(job));
  FETTLE_ASSIGN(const std::vector<PodPtr> pods, pods_of(job));
  const std::int64_t number = run_of(job).run;
  const std::string container = trial_container_of(job);
  const bool ending =
      std::ranges::any_of(pods, [&](const PodPtr& pod) { return is_ending(*pod, container); });
  const std::int64_t now_ms = clock_.now_ms();
  JobView view{job, pods, is_stop_asked(trial, number), now_ms};
  view.refused_before = count_refusals(trial, number);
  view.gang_timeout_ms = options_.gang_timeout_ms;
  const api::RunRecord* record = find_record(trial, number);
  if (record != nullptr && record->running_ms != 0) view.first_uid = record->pod_uid;
  view.queue = queue_wait(job, trial, record);
  core::Run run;
  {
    const std::lock_guard lock(mutex_);
    RunClock& run_clock = run_clocks_[job.metadata.uid];
    view.ending_ms = run_clock.see_ending(ending, now_ms);
    view.resumed_ms = run_clock.see_resumed(job.suspended, now_ms);
    run = run_of_job(view);
    run_clock.correct(run, trial.status.report ? trial.status.report->at_ms : 0, now_ms);
  }
  if (run.state == core::RunState::kPending && has_fallen_apart(view)) {
    FETTLE_TRY(unless_gone(return_gang(job, options_.gang_timeout_ms)));
  }
  if (run.report && is_reported(trial, *run.report)) run.report.reset();
  const Result<api::Study> study = store_.get_study({trial.metadata.ns, trial.spec.study});
  if (!study.ok()) return run;
  move_queue(*study, job);
  // A pending run may wait for a claim that a user deleted. An error is ignored: the next reconcile
  // retries.
  if (run.state == RunState::kPending) {
    (void)ensure_claim(*study);
    restore_gpu_claim(sized_for(*study, trial));
  }
  if (!study->spec.trial.trainer) read_log(job, *study, trial, pods, run);
  return run;
}

// ---- Logs --------------------------------------------------------------------------------------

// For images without a reporter. A run counts as exited only once its log was read to the end.
void JobRuns::read_log(const kube::Job& job, const api::Study& study, const api::Trial& trial,
                       const std::vector<PodPtr>& pods, core::Run& run) {
  const std::string container = trial_container_of(job);
  const PodPtr pod = rank_zero_pod(pods);
  LogReading reading;
  if (pod == nullptr) {
    const api::RunRecord* record = find_record(trial, run.id);
    if (record != nullptr) reading = logs_.recall(record->pod_uid);
  } else if (is_running(*pod, container) || has_ended(*pod, container)) {
    LogSource source{key_of(pod->metadata),
                     pod->metadata.uid,
                     container,
                     trial_group(trial.metadata.ns, trial.metadata.name),
                     trial.spec.study,
                     {}};
    source.metrics = runtime::metric_options(study);
    const bool ended = has_ended(*pod, container);
    reading = logs_.read(source, ended);
    run.seen_ms = reading.since_ms;
    run.heard_ms = std::max(run.heard_ms, reading.heard_ms);
    // What is recorded of an end is final, so it waits for the last report.
    const bool wait = run.state == RunState::kExited && ended && !reading.complete;
    if (wait) {
      run.state = RunState::kRunning;
      run.outcome.reset();
      run.reason.clear();
      run.report.reset();  // written with the end, in one write
      return;
    }
  }
  run.read_ms = reading.read_ms;
  if (run.state == RunState::kRunning) run.reason = reading.read_error;
  const bool is_newer = reading.report && (!run.report || reading.report->step >= run.report->step);
  if (is_newer) run.report = reading.report;
  run.silence = reading.why_no_report;
  if (run.state == RunState::kExited && !reading.read_error.empty()) {
    run.reason += (run.reason.empty() ? "" : "; ") + reading.read_error;
  }
}

void JobRuns::stop_reading() { logs_.stop(); }

core::Capacity JobRuns::capacity(const api::Study& study) {
  core::Capacity capacity;
  capacity.gpu = gpu_choice(study);
  capacity.gpu_memory = most_gpu_memory(study);
  if (core::sizes_itself(study.spec)) capacity.waiting_elsewhere_ms = waiting_elsewhere(study);
  capacity.may_grow = may_grow_in_queue(study);
  return capacity;
}

// Of the pods of other Studies for which the scheduler finds no node: when the oldest was created.
// Only pods that compete count, with GPUs or without like this Study's. Node selectors are not
// compared: a trial that gives GPUs back for nothing gets them again.
std::optional<std::int64_t> JobRuns::waiting_elsewhere(const api::Study& study) {
  std::optional<std::int64_t> oldest_ms;
  std::map<control::Key, bool> competes;
  for (const PodPtr& pod : pods_.all()) {
    const api::Metadata& metadata = pod->metadata;
    if (pod->unschedulable.empty() || !pod->node.empty() || metadata.deleted_ms != 0) continue;
    const control::Key key{metadata.ns, kube::text_in(metadata.labels, core::kStudyLabel)};
    if (key.name.empty()) continue;
    if (key.ns == study.metadata.ns && key.name == study.metadata.name) continue;
    const auto [known, is_new] = competes.try_emplace(key, false);
    if (is_new) {
      const Result<api::Study> other = store_.get_study(key);
      known->second =
          other.ok() && other->spec.trial.gpu.has_value() == study.spec.trial.gpu.has_value();
    }
    if (known->second)
      oldest_ms = std::min(metadata.created_ms, oldest_ms.value_or(metadata.created_ms));
  }
  return oldest_ms;
}

void JobRuns::watch(std::function<void(const std::string& trial)> listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

// ---- Notifying ---------------------------------------------------------------------------------

void JobRuns::job_changed(const JobPtr& before, const JobPtr& after) {
  const api::Metadata& metadata = (after != nullptr ? after : before)->metadata;
  const kube::Job& job = after != nullptr ? *after : *before;
  // In line for nodes as long as its gang is, or may become, incomplete; no domain: no gang.
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
