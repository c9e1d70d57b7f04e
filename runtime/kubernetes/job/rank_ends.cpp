#include "runtime/kubernetes/job/rank_ends.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "core/trial/endings.h"
#include "runtime/kubernetes/pod/service.h"

namespace fettle::kubernetes {
namespace {

using api::Outcome;

// A worker that fails sooner than this after its start has not failed for lack of its peers.
constexpr std::int64_t kPeerPatienceMs = 10'000;
// The first pods of a Job are created within this time; a later one is a replacement.
constexpr std::int64_t kMadeTogetherMs = 30'000;

class RankReader {
 public:
  RankReader(const JobView& view, const std::map<std::int64_t, PodPtr>& pods)
      : view_(view), container_(trial_container_of(view.job)), pods_(pods) {
    first_made_ms_ = view.now_ms;
    for (const auto& [rank, pod] : pods) {
      first_made_ms_ = std::min(first_made_ms_, pod->metadata.created_ms);
      const std::optional<PodEnd> end = end_of_pod(*pod, container_, view.stop_asked);
      if (end && end->outcome != Outcome::kSucceeded) ends_.push_back({rank, *end});
    }
  }

  std::optional<RankEnd> read() const {
    const bool over =
        std::ranges::any_of(ends_, [](const RankEnd& one) { return !one.end.replaced; });
    if (!over) return std::nullopt;
    // An elastic run that has shrunk to one worker may still miss others.
    const bool alone = view_.job.completions == 1 && !misses_others(ends_.front());
    if (view_.stop_asked || alone) return ends_.front();  // a stop explains every end alike
    const std::optional<RankEnd> failure = first_failure();
    if (const std::optional<RankEnd> loss = first_loss(failure)) return loss;
    return failure ? failure : missing_others();
  }

 private:
  static bool is_earlier(const RankEnd& a, const RankEnd& b) { return a.end.at_ms < b.end.at_ms; }
  bool misses_others(const RankEnd& one) const {
    return view_.job.metadata.annotations.count(kServiceAnnotation) > 0 &&
           one.end.exit_code == api::kWorkerMissesOthers && one.end.outcome == Outcome::kFailed;
  }

  // The earliest failure that a worker itself caused.
  std::optional<RankEnd> first_failure() const {
    std::optional<RankEnd> first;
    for (const RankEnd& one : ends_) {
      if (one.end.outcome == Outcome::kDisrupted || misses_others(one)) continue;
      if (!first || is_earlier(one, *first)) first = one;
    }
    return first;
  }

  // The earliest loss of another worker before `failure`.
  std::optional<RankEnd> first_loss(const std::optional<RankEnd>& failure) const {
    std::optional<RankEnd> first;
    for (const auto& [rank, pod] : pods_) {
      if (failure && rank == failure->rank) continue;
      std::optional<PodEnd> loss = loss_of(rank, *pod, failure);
      if (loss && (!first || loss->at_ms < first->end.at_ms)) first = {rank, *std::move(loss)};
    }
    return first;
  }

  // How the worker was lost, if that can have been before `failure`; without one, before now. In
  // the order of certainty: a disruption, a deletion, an end that counts as a disruption, and last
  // the worker's absence when the other one failed. A loss of unknown time (0) counts as earlier.
  // `doomed_ms` is the time at which the deletion of a pod was requested.
  std::optional<PodEnd> loss_of(std::int64_t rank, const kube::Pod& pod,
                                const std::optional<RankEnd>& failure) const {
    const bool is_known = failure && failure->end.at_ms != 0;  // 0: its pod does not give a time
    const std::int64_t before_ms = is_known ? failure->end.at_ms : view_.now_ms;
    const auto known = std::ranges::find(ends_, rank, &RankEnd::rank);
    PodEnd loss = known != ends_.end() ? known->end : PodEnd{};
    loss.outcome = Outcome::kDisrupted;
    if (const auto* target = kube::find_condition(pod.conditions, "DisruptionTarget")) {
      loss.at_ms = target->since_ms;
      if (known == ends_.end()) loss.reason = "its pod is disrupted (" + target->reason + ")";
      if (loss.at_ms <= before_ms) return loss;
    }
    // Strictly before: times are whole seconds, and a deletion in the second of the failure may be
    // the Job controller's.
    if (is_deleted_by_others(pod) && (!failure || pod.doomed_ms < before_ms)) {
      loss.at_ms = pod.doomed_ms;
      loss.reason = "its pod was deleted";
      return loss;
    }
    // The end of a deleted pod is due to the deletion, which was judged above.
    const bool lost = known != ends_.end() && known->end.outcome == Outcome::kDisrupted;
    if (lost && pod.doomed_ms == 0 && loss.at_ms <= before_ms) return loss;
    return failure ? absence_of(rank, pod, *failure) : std::nullopt;
  }

  // A pod deleted after FailureTarget was deleted by the Job controller itself.
  bool is_deleted_by_others(const kube::Pod& pod) const {
    if (pod.doomed_ms == 0) return false;
    const auto* failing = kube::find_condition(view_.job.conditions, "FailureTarget");
    return failing == nullptr || pod.doomed_ms < failing->since_ms;
  }

  // The absence of this worker, if it may have made the other one fail.
  std::optional<PodEnd> absence_of(std::int64_t rank, const kube::Pod& pod,
                                   const RankEnd& failure) const {
    PodEnd loss;
    loss.outcome = Outcome::kDisrupted;
    loss.at_ms = failure.end.at_ms;
    const bool has_run = is_running(pod, container_) || has_ended(pod, container_);
    // Workers that join in a resize are not awaited; an elastic run that has begun waits for none.
    const bool of_first = rank < workers_at_start(view_.job);
    const bool is_awaited = of_first && !(is_elastic(view_.job) && has_begun());
    if (is_awaited && !has_run && ran_for_ms(failure) >= kPeerPatienceMs) {
      const std::string why = why_waiting(pod, container_, view_.now_ms);
      loss.reason = "it never ran, and worker " + std::to_string(failure.rank) +
                    " gave up: " + (why.empty() ? failure.end.reason : why);
      return loss;
    }
    // An elastic run continues without a lost worker, so no worker misses it. Other runs may be
    // resized, too (a user's image): a worker that joined then came late without having been lost.
    if (of_first && !is_elastic(view_.job) &&
        pod.metadata.created_ms > first_made_ms_ + kMadeTogetherMs) {
      loss.reason = "its pod was made again, and worker " + std::to_string(failure.rank) +
                    " missed it: " + failure.end.reason;
      return loss;
    }
    return std::nullopt;
  }

  bool has_begun() const { return !view_.first_uid.empty(); }

  std::int64_t ran_for_ms(const RankEnd& failure) const {
    const kube::Container* trial = trial_container_in(*pods_.at(failure.rank), container_);
    if (trial == nullptr || trial->started_ms == 0) return 0;
    return trial->finished_ms - trial->started_ms;
  }

  // The remaining case: workers that miss their peers, or were disrupted for no visible reason.
  RankEnd missing_others() const {
    RankEnd first = *std::ranges::min_element(ends_, is_earlier);
    if (misses_others(first)) {
      first.end.reason = core::judge_exit({.code = first.end.exit_code, .has_peers = true}).reason;
    }
    first.end.outcome = Outcome::kDisrupted;
    return first;
  }

  const JobView& view_;
  const std::string container_;
  const std::map<std::int64_t, PodPtr>& pods_;
  std::vector<RankEnd> ends_;  // by rank; without workers that succeeded
  std::int64_t first_made_ms_ = 0;
};

}  // namespace

std::optional<RankEnd> end_of_ranks(const JobView& view,
                                    const std::map<std::int64_t, PodPtr>& pods) {
  return RankReader(view, pods).read();
}

bool may_write(const kube::Pod& pod, const std::string& container, bool fenced,
               std::int64_t now_ms) {
  if (has_ended(pod, container)) return false;
  if (pod.metadata.deleted_ms == 0 || must_be_gone(pod, fenced)) return true;
  return now_ms < pod.metadata.deleted_ms + kLostMs;
}

bool may_be_alive(const kube::Pod& pod, const std::string& container, bool fenced,
                  std::int64_t now_ms) {
  return !pod.node.empty() && may_write(pod, container, fenced, now_ms);
}

bool may_add_workers(const kube::Job& job, const std::vector<PodPtr>& pods, std::int64_t now_ms) {
  const std::string container = trial_container_of(job);
  return std::ranges::none_of(pods, [&](const PodPtr& pod) {
    if (rank_of(*pod) >= job.completions) {
      return may_be_alive(*pod, container, /*fenced=*/true, now_ms);
    }
    const auto end = end_of_pod(*pod, container, /*stop_asked=*/false);
    return end && end->outcome == api::Outcome::kSucceeded;
  });
}

}  // namespace fettle::kubernetes
