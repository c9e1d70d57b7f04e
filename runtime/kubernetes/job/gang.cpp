#include "runtime/kubernetes/job/gang.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "api/fields/quantity.h"
#include "api/fields/timestamp.h"
#include "core/names.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/job/queue.h"

namespace fettle::kubernetes {
namespace {

using kube::text_in;

constexpr std::array<std::pair<GangState, const char*>, 5> kStates = {{
    {GangState::kWaiting, "waiting"},
    {GangState::kOpen, "open"},
    {GangState::kGathered, "gathered"},
    {GangState::kReturned, "returned"},
    {GangState::kStopped, "stopped"},
}};

bool is_terminating(const kube::Job& job) {
  return has_ended(job) || job.metadata.deleted_ms != 0 ||
         kube::find_condition(job.conditions, "FailureTarget") != nullptr;
}

bool is_before(const Gang& a, const Gang& b) {
  const auto place = [](const Gang& gang) {
    const api::Metadata& metadata = gang.job->metadata;
    return std::tie(gang.turn.ns, gang.turn.study, metadata.created_ms, metadata.ns, metadata.name);
  };
  return place(a) < place(b);
}

// Whether its pods exist, because the operator or a user resumed it.
bool is_open(const kube::Job& job) {
  const GangState state = gang_state(job);
  return !job.suspended && (state == GangState::kOpen || state == GangState::kWaiting);
}

// When the pod got its node: the API server notes it with the binding.
std::int64_t bound_ms(const kube::Pod& pod) {
  const kube::TrueCondition* const scheduled = kube::find_condition(pod.conditions, "PodScheduled");
  if (scheduled != nullptr && scheduled->since_ms != 0) return scheduled->since_ms;
  return std::max(pod.metadata.created_ms, pod.started_ms);
}

// The gangs of a domain, sorted by turn; decides their transitions.
class DomainQueue {
 public:
  DomainQueue(std::vector<Gang> gangs, std::int64_t now_ms, std::int64_t timeout_ms)
      : gangs_(std::move(gangs)), now_ms_(now_ms), timeout_ms_(timeout_ms) {
    std::erase_if(gangs_, [](const Gang& gang) { return is_terminating(*gang.job); });
    std::ranges::sort(gangs_, is_before);
    // oldest_holder_ points into gangs_, which does not change any more.
    for (const Gang& gang : gangs_) {
      if (waits_for_turn(*gang.job)) waiting_.insert(study_of_gang(*gang.job));
      const bool holds = is_open(*gang.job) && gang.with_node > 0 && !is_complete(gang);
      if (holds && (oldest_holder_ == nullptr || gang.held_ms < oldest_holder_->held_ms)) {
        oldest_holder_ = &gang;
      }
    }
  }

  std::vector<GangStep> next_steps() {
    for (const Gang& gang : gangs_) {
      // Its Job still exists: the operator may have stopped between the two writes.
      if (gang_state(*gang.job) == GangState::kReturned) add(gang, GangState::kReturned);
      if (is_open(*gang.job)) judge(gang);
    }
    if (!gathering_) open_next();
    return std::move(steps_);
  }

 private:
  static bool is_complete(const Gang& gang) { return gang.with_node >= gang.job->completions; }
  void add(const Gang& gang, GangState to) { steps_.push_back({gang.job, to}); }

  void judge(const Gang& gang) {
    if (is_complete(gang)) return add(gang, GangState::kGathered);
    gang.with_node > 0 ? judge_holder(gang) : judge_without_node(gang);
  }

  // Judges a gang that holds nodes and misses others. Other such gangs give way to the one that has
  // held a node longest.
  void judge_holder(const Gang& gang) {
    const std::int64_t opened_ms = gang_opened_ms(*gang.job);
    // A node's clock may be wrong, so its time is clamped.
    const std::int64_t since_ms = std::clamp(gang.held_ms, std::min(opened_ms, now_ms_), now_ms_);
    // After kGatherMs, a missing pod is one that the cluster refuses to create.
    const bool gives_way = &gang != oldest_holder_ || gang.with_pod < gang.job->completions;
    const std::int64_t limit_ms = gives_way ? std::min(kGatherMs, timeout_ms_) : timeout_ms_;
    if (now_ms_ >= since_ms + limit_ms) return add(gang, GangState::kReturned);
    gathering_ = true;
  }

  // Judges a gang without a node. It keeps its turn, which costs nobody anything, unless others of
  // its Study want to try: an autoscaler may be adding nodes.
  void judge_without_node(const Gang& gang) {
    const std::int64_t open_ms = now_ms_ - gang_opened_ms(*gang.job);
    const std::string study = study_of_gang(*gang.job);
    const bool is_refused = gang.refused >= gang.job->completions;
    const bool has_no_pods = gang.with_pod == 0 && open_ms >= kPodsPatienceMs;
    // Not unplaced any more, so another gang of its Study may be opened at once.
    if (open_ms >= timeout_ms_ && waiting_.contains(study)) return add(gang, GangState::kReturned);
    unplaced_.insert(study);
    if (open_ms < kGatherMs && !is_refused && !has_no_pods) gathering_ = true;
  }

  // gangs_ is sorted by turn, so the first that may be opened is next.
  void open_next() {
    const auto next = std::ranges::find_if(gangs_, [this](const Gang& gang) {
      return waits_for_turn(*gang.job) && now_ms_ >= gang.turn.backoff_until_ms &&
             !unplaced_.contains(study_of_gang(*gang.job));
    });
    if (next != gangs_.end()) add(*next, GangState::kOpen);
  }

  std::vector<Gang> gangs_;
  const std::int64_t now_ms_;
  const std::int64_t timeout_ms_;
  const Gang* oldest_holder_ = nullptr;
  std::set<std::string> waiting_;   // Studies with gangs that wait for their turn
  std::set<std::string> unplaced_;  // Studies with an open gang that has no node
  bool gathering_ = false;
  std::vector<GangStep> steps_;
};

}  // namespace

const char* to_string(GangState state) {
  const auto* const found =
      std::ranges::find_if(kStates, [&](const auto& one) { return one.first == state; });
  return found == kStates.end() ? "" : found->second;
}

// Kueue alone suspends and resumes a Job that it manages, whatever its workers are.
GangState gang_state(const kube::Job& job) {
  if (!queue_of(job).empty()) return GangState::kNone;
  const std::string text = text_in(job.metadata.annotations, kGangAnnotation);
  const auto* const found =
      std::ranges::find_if(kStates, [&](const auto& one) { return one.second == text; });
  return found == kStates.end() ? GangState::kNone : found->first;
}

std::int64_t gang_opened_ms(const kube::Job& job) {
  const std::int64_t otherwise = std::max(job.metadata.created_ms, job.started_ms);
  return api::parse_timestamp(text_in(job.metadata.annotations, kGangOpenedAnnotation))
      .value_or(otherwise);
}

bool is_suspended_by_others(const kube::Job& job) {
  const GangState state = gang_state(job);
  return job.suspended && state != GangState::kWaiting && state != GangState::kStopped;
}

std::string domain_of(const kube::Job& job) {
  return text_in(job.metadata.annotations, kGangDomainAnnotation);
}

bool is_in_queue(const kube::Job& job) {
  const GangState state = gang_state(job);
  const bool stands =
      state == GangState::kWaiting || state == GangState::kOpen || state == GangState::kReturned;
  return stands && !has_ended(job);
}

std::int64_t workers_with_node(const kube::Job& job, const std::vector<PodPtr>& pods) {
  std::set<std::int64_t> ranks;
  for (const PodPtr& pod : pods) {
    // A pod that has ended has had its node, or was refused by it.
    const bool waits = pod->node.empty() && (pod->phase.empty() || pod->phase == "Pending");
    if (!waits && rank_of(*pod) < job.completions) ranks.insert(rank_of(*pod));
  }
  return std::ssize(ranks);
}

std::string study_of_gang(const kube::Job& job) {
  return job.metadata.ns + '/' + text_in(job.metadata.labels, core::kStudyLabel);
}

bool waits_for_turn(const kube::Job& job) {
  return job.suspended && gang_state(job) == GangState::kWaiting;
}

Gang gang_of(JobPtr job, const std::vector<PodPtr>& pods) {
  Gang out;
  out.with_node = workers_with_node(*job, pods);
  std::set<std::int64_t> ranks;
  std::set<std::int64_t> refused;
  for (const PodPtr& pod : pods) {
    const std::int64_t rank = rank_of(*pod);
    // A resize removes these ranks, and a pod that is being deleted gives its node up.
    if (rank >= job->completions || pod->metadata.deleted_ms != 0) continue;
    ranks.insert(rank);
    if (pod->node.empty() && !pod->unschedulable.empty()) refused.insert(rank);
    if (pod->node.empty()) continue;
    const std::int64_t since_ms = bound_ms(*pod);
    out.held_ms = out.held_ms == 0 ? since_ms : std::min(out.held_ms, since_ms);
  }
  out.with_pod = std::ssize(ranks);
  out.refused = std::ssize(refused);
  out.job = std::move(job);
  return out;
}

std::string why_returned(const Gang& gang, std::int64_t now_ms, std::int64_t timeout_ms) {
  constexpr const char* kGivesWay =
      "; they give way to others, and are tried again at the end of the line";
  const std::int64_t workers = gang.job->completions;
  // It may have been given back before its time.
  const std::int64_t open_ms = now_ms - gang_opened_ms(*gang.job);
  const std::int64_t waited_s = std::clamp(open_ms, std::int64_t{0}, timeout_ms) / 1000;
  const std::string time = api::format_duration(static_cast<double>(waited_s));
  if (gang_state(*gang.job) == GangState::kGathered) {  // is_incomplete_again()
    return "a worker lost its node before all had started, and found no other in " + time +
           kGivesWay;
  }
  if (workers == 1) {
    return "its pod has no node after " + time +
           "; it gives way to others, and is tried again at the end of the line";
  }
  const std::string pods_missing =
      gang.with_pod < workers
          ? " (only " + std::to_string(gang.with_pod) +
                " have a pod; quota, limits or Pod Security of the namespace may forbid the others)"
          : "";
  return std::to_string(gang.with_node) + " of " + std::to_string(workers) +
         " workers have a node after " + time + pods_missing + kGivesWay;
}

std::vector<GangStep> next_gang_steps(std::vector<Gang> gangs, std::int64_t now_ms,
                                      std::int64_t timeout_ms) {
  return DomainQueue(std::move(gangs), now_ms, timeout_ms).next_steps();
}

}  // namespace fettle::kubernetes
