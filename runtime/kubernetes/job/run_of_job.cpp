#include "runtime/kubernetes/job/run_of_job.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "api/study/pod_template.h"
#include "core/trial/endings.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/gpu/pod_gpus.h"
#include "runtime/kubernetes/job/gang.h"
#include "runtime/kubernetes/job/pod_end.h"
#include "runtime/kubernetes/job/queue.h"
#include "runtime/kubernetes/job/rank_ends.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::kubernetes {
namespace {

using api::Outcome;
using core::EndCondition;
using core::Run;
using core::RunState;
using kube::number_in;
using kube::text_in;

// Waiting in the queue of gangs is reported after this time.
constexpr std::int64_t kTurnPatienceMs = 30'000;
// Pods are made and bound within this time if there is room.
constexpr std::int64_t kPlacingMs = 3'000;

// A rank has a second pod once its first one was disrupted; the newest counts.
bool is_newer_pod(const PodPtr& a, const PodPtr& b) {
  return a->metadata.created_ms != b->metadata.created_ms
             ? a->metadata.created_ms > b->metadata.created_ms
             : a->metadata.name > b->metadata.name;
}

// The newest pod of each rank below completions.
std::map<std::int64_t, PodPtr> newest_pods(const kube::Job& job, const std::vector<PodPtr>& pods) {
  std::map<std::int64_t, PodPtr> newest;
  for (const PodPtr& pod : pods) {
    if (rank_of(*pod) >= job.completions) continue;
    PodPtr& known = newest[rank_of(*pod)];
    if (known == nullptr || is_newer_pod(pod, known)) known = pod;
  }
  return newest;
}

// The GPUs that the Job was made with; absent for a Job without GPUs, or of an earlier version.
std::optional<double> gpus_of(const kube::Job& job) {
  const std::string text = text_in(job.metadata.annotations, kGpusAnnotation);
  double gpus = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), gpus);
  return read.ec == std::errc() && gpus > 0 ? std::optional(gpus) : std::nullopt;
}

// The sources of the requests that nodes must meet.
std::string asked_by(const kube::Job& job) {
  const std::string profile = text_in(job.metadata.annotations, kGpuProfileAnnotation);
  return profile.empty() ? "its template asks" : "its template and GPU profile " + profile + " ask";
}

std::string of_workers(std::int64_t count, const kube::Job& job) {
  return std::to_string(count) + " of " + std::to_string(job.completions) + " workers";
}

// Whether the pod has waited for a node for the gang's timeout.
bool finds_no_node(const kube::Pod& pod, const JobView& view) {
  const bool late = view.now_ms - pod.metadata.created_ms >= view.gang_timeout_ms;
  return pod.node.empty() && pod.phase == "Pending" && late;
}

// Whether the pod has had a node for the start timeout without starting.
bool cannot_start(const kube::Pod& pod, const JobView& view) {
  const auto* const scheduled = kube::find_condition(pod.conditions, "PodScheduled");
  const std::int64_t since_ms =
      std::max(pod.metadata.created_ms, scheduled == nullptr ? 0 : scheduled->since_ms);
  const bool waits = !pod.node.empty() && pod.phase == "Pending" && pod.metadata.deleted_ms == 0;
  return waits && view.start_timeout_ms != 0 && view.now_ms - since_ms >= view.start_timeout_ms;
}

class RunReader {
 public:
  explicit RunReader(const JobView& view)
      : view_(view),
        job_(view.job),
        container_(trial_container_of(view.job)),
        pods_(newest_pods(view.job, view.pods)) {}

  Run read() {
    run_.id = number_in(job_.metadata.labels, kRunLabel);
    run_.workers = job_.completions;
    run_.until_step = number_in(job_.metadata.annotations, kUntilStepAnnotation);
    run_.gpus = gpus_of(job_);
    if (is_returned()) return std::move(run_);
    if (const auto first = pods_.find(0); first != pods_.end()) take_first(*first->second);
    // The first condition that holds is the end of the run. A queue's action comes before the ends
    // of ranks, which would count against the trial. The Job's conditions come last: its pods say
    // more.
    if (was_preempted() || was_given_up() || first_succeeded() || ends_by_a_rank() ||
        is_node_lost() || all_succeeded() || has_job_ended() || was_rank_zero_replaced() ||
        has_gang_timed_out()) {
      run_.terminating = any_pod_alive();
      return std::move(run_);
    }
    wait_or_run();
    return std::move(run_);
  }

 private:
  bool is_returned();
  void take_first(const kube::Pod& pod);
  bool was_preempted();
  bool was_given_up();
  bool was_taken_by_queue(const kube::Pod& pod) const;
  bool first_succeeded();
  bool ends_by_a_rank();
  bool is_node_lost();
  std::int64_t overdue_ms(const kube::Pod& pod) const;
  bool is_queued() const { return is_suspended_by_others(job_) && !view_.stop_asked; }
  bool is_over() const {
    return kube::find_condition(job_.conditions, "Complete") != nullptr ||
           kube::find_condition(job_.conditions, "Failed") != nullptr;
  }
  // The time since which the Job can have pods. Kueue resets its start at each suspension, and the
  // Job controller sets it again a moment after the Job is resumed.
  std::int64_t resumed_ms() const {
    return std::max({job_.metadata.created_ms, job_.started_ms, view_.resumed_ms});
  }
  bool all_succeeded();
  bool has_job_ended();
  bool was_rank_zero_replaced();
  bool has_gang_timed_out();
  void wait_or_run();
  std::int64_t needed() const;
  std::int64_t unplaced() const;
  std::string why_no_pods() const;
  std::string why_incomplete() const;
  bool any_pod_alive() const {
    return std::ranges::any_of(view_.pods, [this](const PodPtr& pod) {
      return may_be_alive(*pod, container_, view_.fenced, view_.now_ms);
    });
  }
  // `at_ms`: 0 = unknown, so now.
  void exit(Outcome outcome, std::string reason, std::int64_t at_ms) {
    run_.state = RunState::kExited;
    run_.outcome = outcome;
    run_.reason = std::move(reason);
    run_.ended_ms = at_ms != 0 ? at_ms : view_.now_ms;
  }
  // Ends all pods at once; a requested stop explains the end. `details` follow the table's
  // sentence.
  void exit_for(EndCondition condition, const std::string& details, std::int64_t at_ms) {
    if (view_.stop_asked) condition = EndCondition::kStopAsked;
    const core::JudgedExit judged =
        core::judge_exit({.host = core::Host::kContainer, .condition = condition});
    exit(judged.outcome, judged.reason + (view_.stop_asked ? "" : details), at_ms);
  }

  const JobView& view_;
  const kube::Job& job_;
  const std::string container_;
  const std::map<std::int64_t, PodPtr> pods_;
  Run run_;
};

// Whether the gang gave its GPUs back; the run is not over and starts again as another Job.
bool RunReader::is_returned() {
  if (gang_state(job_) != GangState::kReturned || view_.stop_asked) return false;
  run_.reason = "its Job is created again and waits in the queue for nodes";
  return true;
}

// The uid is reported once the pod runs: it tells the reports of two pods apart.
void RunReader::take_first(const kube::Pod& pod) {
  if (!is_running(pod, container_) && !has_ended(pod, container_)) return;
  run_.pod_uid = pod.metadata.uid;
  const kube::Container* container = trial_container_in(pod, container_);
  run_.started_ms = container == nullptr ? pod.started_ms : container->started_ms;
  // The node's clock may be wrong; the scheduler's is the control plane's.
  const auto* scheduled = kube::find_condition(pod.conditions, "PodScheduled");
  if (run_.started_ms != 0 && scheduled != nullptr) {
    run_.started_ms = std::min(std::max(run_.started_ms, scheduled->since_ms), view_.now_ms);
  }
  if (container != nullptr && container->terminated) {
    run_.report = read_termination_message(*container);
    run_.exit_code = container->exit_code;
  }
}

// Whether a queue suspended the Job, which deletes its pods, and their ends ended the Job: the
// failure of one failed it, or each exit with 0 counted as a completed index. Whatever the exit
// codes, the queue caused this and not the trial; the next run waits in the queue.
bool RunReader::was_preempted() {
  if (!is_queued()) return false;
  // Also if none is left.
  const bool taken_away = std::ranges::all_of(
      pods_, [](const auto& pod) { return pod.second->metadata.deleted_ms != 0; });
  if (!is_over() || !taken_away) return false;
  exit(Outcome::kDisrupted, "its queue took its nodes back", view_.now_ms);
  run_.queued = true;
  const auto first = pods_.find(0);
  const kube::Container* const container =
      first == pods_.end() ? nullptr : trial_container_in(*first->second, container_);
  // 0 is a success if the last step is reported (judge_run).
  if (container != nullptr && container->terminated) run_.exit_code = container->exit_code;
  return true;
}

// A finished Workload cannot be admitted again: the next run gets another Job.
bool RunReader::was_given_up() {
  const WorkloadView& workload = view_.queue.workload;
  if (!is_queued() || workload.state != WorkloadView::State::kFinished || any_pod_alive()) {
    return false;
  }
  exit(Outcome::kDisrupted, "its queue has given its Job up: " + workload.message, view_.now_ms);
  run_.started_ms = view_.now_ms;  // its time before the suspension is charged already
  return true;
}

// In an elastic run rank 0 has the result; a worker that joins after its end finds no peers.
bool RunReader::first_succeeded() {
  const auto first = pods_.find(0);
  if (!is_elastic(job_) || first == pods_.end()) return false;
  const std::optional<PodEnd> end = end_of_pod(*first->second, container_, view_.stop_asked);
  if (!end || end->outcome != Outcome::kSucceeded) return false;
  exit(Outcome::kSucceeded, "", end->at_ms);
  return true;
}

// Whether the run now waits for the queue to resume the Job. The Job may not be seen suspended yet,
// or no longer, since pods and Jobs arrive by two watches. Any other deletion fails the Job, or
// another pod follows.
bool RunReader::was_taken_by_queue(const kube::Pod& pod) const {
  if (pod.metadata.deleted_ms == 0) return false;
  if (is_queued()) return true;
  return !queue_of(job_).empty() && !view_.stop_asked && !is_over();
}

bool RunReader::ends_by_a_rank() {
  const std::optional<RankEnd> found = end_of_ranks(view_, pods_);
  // While a run stops, rank 0 may still be writing the checkpoint.
  if (!found || (view_.stop_asked && any_pod_alive())) return false;
  const auto& [rank, end] = *found;
  if (was_taken_by_queue(*pods_.at(rank))) return false;
  const bool one_of_many = job_.completions > 1;
  const std::string who = one_of_many ? "worker " + std::to_string(rank) + ": " : std::string();
  if (was_refused(end.reason) && view_.refused_before >= kMaxAdmissionErrors) {
    exit(Outcome::kFailed,
         who + end.reason + "; nodes refused its pod " + std::to_string(kMaxAdmissionErrors + 1) +
             " times in a row: can they give what " + asked_by(job_) + " for?",
         end.at_ms);
    return true;
  }
  exit(end.outcome, who + end.reason, end.at_ms);
  run_.gpu_memory_short = end.gpu_memory_short;
  run_.presumed = end.presumed && !one_of_many;  // the end of another worker may be the cause
  if (rank == 0) run_.exit_code = end.exit_code;
  return true;
}

// How long the pod is past its deadline; 0 = it has ended, or may still take time.
std::int64_t RunReader::overdue_ms(const kube::Pod& pod) const {
  if (!is_ending(pod, container_)) return 0;
  // deleted_ms is the deadline by the API server's clock, which may be behind the operator's.
  const std::int64_t since_ms = std::max(pod.metadata.deleted_ms, view_.ending_ms);
  const std::int64_t over_ms = view_.now_ms - since_ms;
  return over_ms >= kOverdueMs ? over_ms : 0;
}

bool RunReader::is_node_lost() {
  for (const auto& [rank, pod] : pods_) {
    if (overdue_ms(*pod) < kLostMs) continue;
    // After our own stop the end is recorded at once; `terminating` keeps the next run waiting.
    if (!view_.stop_asked && must_be_gone(*pod, view_.fenced)) continue;
    exit_for(EndCondition::kNodeLost, "", view_.now_ms);
    if (!view_.stop_asked) {
      run_.reason =
          "its node " + pod->node + " is lost: the pod should have ended, and does not say so";
    }
    return true;
  }
  return false;
}

bool RunReader::all_succeeded() {
  std::int64_t succeeded = 0;
  std::int64_t last_ms = 0;
  for (const auto& [rank, pod] : pods_) {
    const std::optional<PodEnd> end = end_of_pod(*pod, container_, view_.stop_asked);
    if (!end || end->outcome != Outcome::kSucceeded) continue;
    ++succeeded;
    last_ms = std::max(last_ms, end->at_ms);
  }
  if (succeeded < job_.completions) return false;
  exit(Outcome::kSucceeded, "", last_ms);
  return true;
}

// Decides if the pods that would decide are gone.
bool RunReader::has_job_ended() {
  if (const auto* complete = kube::find_condition(job_.conditions, "Complete")) {
    exit(Outcome::kSucceeded, "", complete->since_ms);
    if (pods_.count(0) == 0) run_.read_error = "its pod is gone, and with it what it reported last";
    return true;
  }
  if (const auto* failed = kube::find_condition(job_.conditions, "Failed")) {
    // After a stop, the deadline is ours: it ends a Job in a queue (JobRuns::stop).
    if (failed->reason == "DeadlineExceeded" && !view_.stop_asked) {
      exit(Outcome::kFailed, "the Job was ended by its own deadline: " + failed->message,
           failed->since_ms);
    } else {
      exit_for(EndCondition::kResultLost, ": " + failed->message, failed->since_ms);
    }
    return true;
  }
  const bool deleted = job_.metadata.deleted_ms != 0;
  if (view_.pods.empty() && (deleted || (view_.stop_asked && job_.suspended && job_.active == 0))) {
    exit(view_.stop_asked ? Outcome::kStopped : Outcome::kDisrupted,
         view_.stop_asked ? "stopped" : "the Job was deleted, not by Fettle", view_.now_ms);
    return true;
  }
  return false;
}

// Pods have the world size of the Job's creation in their environment. After the run has shrunk, a
// replaced rank 0 would wait for workers that are gone.
bool RunReader::was_rank_zero_replaced() {
  const auto first = pods_.find(0);
  const bool is_another = first != pods_.end() && !view_.first_uid.empty() &&
                          first->second->metadata.uid != view_.first_uid;
  if (!is_another || job_.completions >= workers_at_start(job_)) return false;
  exit(Outcome::kDisrupted, "worker 0 was disrupted after the run had shrunk", 0);
  return true;
}

// A run that has begun waits for a replaced worker that finds no node or cannot start. A run that
// has not begun yet (first_uid is empty) is given back: by next_gang_steps(), or if it
// is_incomplete_again() or cannot start.
bool RunReader::has_gang_timed_out() {
  if (view_.first_uid.empty() || is_elastic(job_)) return false;
  const bool is_gang = view_.gang_timeout_ms != 0 && job_.completions > 1;
  for (const auto& [rank, pod] : pods_) {
    const bool no_node = is_gang && finds_no_node(*pod, view_);
    if (!no_node && !cannot_start(*pod, view_)) continue;
    exit(Outcome::kDisrupted,
         "worker " + std::to_string(rank) + " was disrupted and " +
             (no_node ? "finds no node: " : "does not start again: ") +
             why_waiting(*pod, container_, view_.now_ms),
         view_.now_ms);
    return true;
  }
  return false;
}

std::string RunReader::why_no_pods() const {
  const GangState gang = gang_state(job_);
  if (job_.suspended && gang == GangState::kWaiting) {
    if (view_.now_ms - job_.metadata.created_ms < kTurnPatienceMs) return "";
    if (job_.completions == 1) {
      return "it waits in the queue for nodes: trials that share GPUs are scheduled one at a time, "
             "because their scheduler packs too many on a card when they come at once";
    }
    return "it waits in the queue for nodes: trials of several workers are scheduled one at a "
           "time, so that no two of them wait for each other";
  }
  if (is_queued() && !queue_of(job_).empty()) {
    const bool is_new = view_.now_ms - job_.metadata.created_ms < kTurnPatienceMs;
    return is_new && !is_urgent(view_.queue) ? "" : why_queued(job_, view_.queue);
  }
  if (is_queued()) {
    return "the Job is suspended: a queue such as Kueue, or the user who suspended it, must resume "
           "it";
  }
  if (job_.suspended) return "";  // by Fettle, which stops it
  const std::int64_t since_ms = gang == GangState::kNone ? resumed_ms() : gang_opened_ms(job_);
  if (view_.now_ms - since_ms < kPodsPatienceMs) return "";
  return "no pod could be created yet; quota, limits or Pod Security of the namespace may forbid "
         "it: "
         "kubectl describe job -n " +
         job_.metadata.ns + " " + job_.metadata.name + " says which";
}

// "3 of 4 workers have a node"; "" if all have one or may still get one.
std::string RunReader::why_incomplete() const {
  const std::int64_t with_node = workers_with_node(job_, view_.pods);
  const bool gathers = gang_state(job_) == GangState::kOpen && !job_.suspended;
  if (!gathers || job_.completions == 1 || with_node >= job_.completions ||
      view_.now_ms - gang_opened_ms(job_) < kPodsPatienceMs) {
    return "";
  }
  std::string words = of_workers(with_node, job_) + " have a node";
  if (job_.metadata.annotations.count(kOneNodeAnnotation) > 0) {
    words +=
        " (only one node can mount their checkpoints; spec.trial.checkpoints.accessMode: "
        "ReadWriteMany lets them spread)";
  }
  return words;
}

// The number of running workers from which the run counts as running.
std::int64_t RunReader::needed() const {
  const std::int64_t at_start = std::min(workers_at_start(job_), job_.completions);
  if (view_.first_uid.empty()) return at_start;
  if (view_.stop_asked) return 1;
  if (!is_elastic(job_)) return job_.completions;
  return std::min(number_in(job_.metadata.annotations, kMinWorkersAnnotation), job_.completions);
}

// Workers without a node, once the scheduler has had time to find one.
std::int64_t RunReader::unplaced() const {
  std::int64_t placed = 0;
  for (const auto& [rank, pod] : pods_) {
    const bool is_new = view_.now_ms - pod->metadata.created_ms < kPlacingMs;
    if (!pod->node.empty() || is_new) ++placed;
  }
  if (view_.now_ms - resumed_ms() < kPlacingMs) return 0;
  return std::max<std::int64_t>(0, job_.completions - placed);
}

void RunReader::wait_or_run() {
  run_.queued = is_queued();
  run_.unplaced_workers = unplaced();
  if (pods_.empty() || run_.queued) run_.reason = why_no_pods();
  std::int64_t running = 0;
  bool first_runs = false;
  for (const auto& [rank, pod] : pods_) {
    const std::optional<PodEnd> end = end_of_pod(*pod, container_, view_.stop_asked);
    const bool succeeded = end && end->outcome == Outcome::kSucceeded;
    const std::int64_t late_ms = overdue_ms(*pod);
    // A worker that has succeeded counts: it does not make the run wait while its peers finish.
    const bool runs = (is_running(*pod, container_) && late_ms == 0) || succeeded;
    if (runs) ++running;
    if (runs && rank == 0) first_runs = true;
    const std::string waits = late_ms > 0            ? why_overdue(*pod, view_.fenced)
                              : end && end->replaced ? end->reason
                                                     : why_waiting(*pod, container_, view_.now_ms);
    if (run_.reason.empty()) run_.reason = waits;
  }
  run_.running_workers = running;
  if (const std::string few = why_incomplete(); !few.empty()) {
    run_.reason = few + (run_.reason.empty() ? "" : "; " + run_.reason);
  }
  // Rank 0 holds the rendezvous: without it no worker continues. A run that is being stopped still
  // counts as running while any worker saves.
  if (run_.queued || running < needed() || !(first_runs || view_.stop_asked)) return;
  run_.state = RunState::kRunning;
  run_.reason.clear();
}

}  // namespace

bool must_be_gone(const kube::Pod& pod, bool fenced) { return !fenced && !pod.claims.empty(); }

std::int64_t workers_at_start(const kube::Job& job) {
  const std::int64_t known = number_in(job.metadata.annotations, kWorkersAnnotation);
  return known == 0 ? job.completions : known;
}

bool is_elastic(const kube::Job& job) {
  return job.metadata.annotations.count(kMinWorkersAnnotation) > 0;
}

Run run_of_job(const JobView& view) { return RunReader(view).read(); }

bool is_incomplete_again(const JobView& view) {
  if (gang_state(view.job) != GangState::kGathered || view.gang_timeout_ms == 0) return false;
  if (!view.first_uid.empty() || view.stop_asked) return false;
  const std::map<std::int64_t, PodPtr> pods = newest_pods(view.job, view.pods);
  // Without any node there is nothing to give back, and an autoscaler may be adding nodes.
  return std::ranges::any_of(pods, [](const auto& one) { return !one.second->node.empty(); }) &&
         std::ranges::any_of(pods,
                             [&](const auto& one) { return finds_no_node(*one.second, view); });
}

std::string why_not_started(const JobView& view) {
  if (!view.first_uid.empty() || view.stop_asked || !queue_of(view.job).empty()) return "";
  for (const auto& [rank, pod] : newest_pods(view.job, view.pods)) {
    if (!cannot_start(*pod, view)) continue;
    return "pod " + pod->metadata.name + " has a node and does not start: " +
           why_waiting(*pod, trial_container_of(view.job), view.now_ms);
  }
  return "";
}

PodPtr rank_zero_pod(const std::vector<PodPtr>& pods) {
  PodPtr first;
  for (const PodPtr& pod : pods) {
    if (rank_of(*pod) == 0 && (first == nullptr || is_newer_pod(pod, first))) first = pod;
  }
  return first;
}

std::string trial_container_of(const kube::Job& job) {
  const std::string name = text_in(job.metadata.annotations, kContainerAnnotation);
  return name.empty() ? api::kTrialContainer : name;
}

std::int64_t rank_of(const kube::Pod& pod) {
  return number_in(pod.metadata.labels, kube::kRankLabel);
}

}  // namespace fettle::kubernetes
