#include "runtime/kubernetes/gang.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

#include "api/timestamp.h"
#include "kube/labels.h"
#include "runtime/kubernetes/ownership.h"
#include "runtime/kubernetes/queue.h"

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

bool is_leaving(const kube::Job& job) {
  return has_ended(job) || job.metadata.deleted_ms != 0 ||
         kube::find_condition(job.conditions, "FailureTarget") != nullptr;
}

bool is_before(const Gang& a, const Gang& b) {
  const auto place = [](const kube::Job& job) {
    return std::tie(job.metadata.created_ms, job.metadata.ns, job.metadata.name);
  };
  return place(*a.job) < place(*b.job);
}

// Its pods exist, because the operator or a user resumed it.
bool is_open(const kube::Job& job) {
  const GangState state = gang_state(job);
  return !job.suspended && (state == GangState::kOpen || state == GangState::kWaiting);
}

bool is_waiting(const kube::Job& job) {
  return job.suspended && gang_state(job) == GangState::kWaiting;
}

}  // namespace

const char* to_string(GangState state) {
  const auto* const found =
      std::ranges::find_if(kStates, [&](const auto& one) { return one.first == state; });
  return found == kStates.end() ? "" : found->second;
}

// One that Kueue manages is Kueue's to suspend and to resume, whatever its workers are.
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
    // One that has ended has had its node, or was refused by it.
    const bool waits = pod->node.empty() && (pod->phase.empty() || pod->phase == "Pending");
    if (!waits && rank_of(*pod) < job.completions) ranks.insert(rank_of(*pod));
  }
  return std::ssize(ranks);
}

std::vector<GangStep> next_gang_steps(std::vector<Gang> gangs, std::int64_t now_ms,
                                      std::int64_t timeout_ms) {
  std::ranges::sort(gangs, is_before);
  std::erase_if(gangs, [](const Gang& gang) { return is_leaving(*gang.job); });
  const auto next =
      std::ranges::find_if(gangs, [](const Gang& gang) { return is_waiting(*gang.job); });
  std::vector<GangStep> steps;
  bool gathering = false;
  for (const auto& [job, with_node] : gangs) {
    // Its Job is not deleted yet: the operator may have stopped between the two writes.
    if (gang_state(*job) == GangState::kReturned) steps.push_back({job, GangState::kReturned});
    if (!is_open(*job)) continue;
    const bool late = now_ms >= gang_opened_ms(*job) + timeout_ms;
    // A gang without nodes keeps its turn while no other one waits: an autoscaler may be adding
    // nodes.
    const bool blocks = with_node > 0 || next != gangs.end();
    if (with_node >= job->completions) {
      steps.push_back({job, GangState::kGathered});
    } else if (late && blocks) {
      steps.push_back({job, GangState::kReturned});
    } else {
      gathering = true;
    }
  }
  if (!gathering && next != gangs.end()) steps.push_back({next->job, GangState::kOpen});
  return steps;
}

}  // namespace fettle::kubernetes
