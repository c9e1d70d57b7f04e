#include "runtime/kubernetes/run/run_observer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/job/rank_ends.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::kubernetes {
namespace {

bool is_stop_asked(const api::RunRecord* record) {
  // A run with an outcome is over for the controller, which stops the rest of it.
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

}  // namespace

// Jobs and pods are separate watches: if the Job has ended and the watch of pods lags, pods are
// listed, because the trial's last report is only in its pod.
Result<std::vector<PodPtr>> RunObserver::pods_of(const kube::Job& job) {
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
    if (group_of(pod) != pod_group(job)) continue;  // of another run of the trial
    pods.push_back(std::make_shared<const kube::Pod>(std::move(pod)));
  }
  return pods;
}

JobView RunObserver::view_of(const kube::Job& job, const api::Trial& trial,
                             const std::vector<PodPtr>& pods, bool fenced) {
  const std::int64_t run = run_of(job).run;
  const api::RunRecord* record = find_record(trial, run);
  JobView view{job, pods, is_stop_asked(record), clock_.now_ms()};
  view.refused_before = count_refusals(trial, run);
  view.gang_timeout_ms = gang_timeout_ms_;
  view.start_timeout_ms = start_timeout_ms_;
  view.fenced = fenced;
  // running_ms is 0 before the run has begun, and again after its queue has preempted it
  // (reset_running): then all workers start anew.
  if (record != nullptr && record->running_ms != 0) view.first_uid = record->pod_uid;
  view.queue = workloads_.wait_of(job, trial, record);
  return view;
}

core::Run RunObserver::read(JobView view, const api::Trial& trial) {
  const std::string container = trial_container_of(view.job);
  const bool ending =
      std::ranges::any_of(view.pods, [&](const PodPtr& pod) { return is_ending(*pod, container); });
  core::Run run;
  {
    const std::lock_guard lock(mutex_);
    RunClock& run_clock = run_clocks_[view.job.metadata.uid];
    view.ending_ms = run_clock.note_ending(ending, view.now_ms);
    view.resumed_ms = run_clock.note_resumed(view.job.suspended, view.now_ms);
    run = run_of_job(view);
    run_clock.correct(run, trial.status.report ? trial.status.report->at_ms : 0, view.now_ms);
  }
  if (run.report && is_reported(trial, *run.report)) run.report.reset();
  return run;
}

bool RunObserver::has_live_pods(const kube::Job& job, bool fenced) const {
  const std::string container = trial_container_of(job);
  return std::ranges::any_of(pods_.group(pod_group(job)), [&](const PodPtr& pod) {
    return may_be_alive(*pod, container, fenced, clock_.now_ms());
  });
}

Status RunObserver::check_active(const kube::Job& job, const api::Trial& trial) const {
  return workloads_.check_active(job, find_record(trial, run_of(job).run));
}

std::int64_t RunObserver::note_failing(const kube::Job& job, bool failing) {
  const std::lock_guard lock(mutex_);
  return run_clocks_[job.metadata.uid].note_failing(failing, clock_.now_ms());
}

void RunObserver::forget(const std::string& uid) {
  workloads_.forget(uid);
  const std::lock_guard lock(mutex_);
  run_clocks_.erase(uid);
}

}  // namespace fettle::kubernetes
