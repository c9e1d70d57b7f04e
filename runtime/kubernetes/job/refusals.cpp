#include "runtime/kubernetes/job/refusals.h"

#include <algorithm>
#include <utility>

namespace fettle::kubernetes {

void Refusals::add(const RunName& run, std::int64_t workers, std::string why, std::int64_t now_ms) {
  insert(run, {workers, std::move(why), now_ms, now_ms + kRetryRefusedMs,
               /*may_be_released=*/true});
}

void Refusals::hold_back(const RunName& run, std::int64_t workers, std::string why,
                         std::int64_t now_ms, std::int64_t until_ms) {
  insert(run, {workers, std::move(why), now_ms, until_ms, /*may_be_released=*/false});
}

void Refusals::insert(const RunName& run, Refusal refusal) {
  refusals_[run] = std::move(refusal);
  if (refusals_.size() <= kMaxRefusals) return;
  refusals_.erase(std::ranges::min_element(refusals_, [](const auto& a, const auto& b) {
    return a.second.since_ms < b.second.since_ms;
  }));
}

void Refusals::remove(const RunName& run) { refusals_.erase(run); }

std::vector<core::Run> Refusals::of_trial(const RunName& trial, std::int64_t now_ms) const {
  std::vector<core::Run> runs;
  RunName first = trial;
  first.run = 0;
  for (auto it = refusals_.lower_bound(first); it != refusals_.end(); ++it) {
    const auto& [name, refusal] = *it;
    if (name.ns != trial.ns || name.trial != trial.trial || name.uid != trial.uid) break;
    if (now_ms >= refusal.until_ms) continue;
    core::Run run;
    run.id = name.run;
    run.workers = refusal.workers;
    run.reason = refusal.why;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::optional<RunName> Refusals::release_one(const std::string& ns) {
  auto oldest = refusals_.end();
  for (auto it = refusals_.begin(); it != refusals_.end(); ++it) {
    if (it->first.ns != ns || !it->second.may_be_released) continue;
    const bool older = oldest == refusals_.end() || it->second.since_ms < oldest->second.since_ms;
    if (older) oldest = it;
  }
  if (oldest == refusals_.end()) return std::nullopt;
  RunName released = oldest->first;
  refusals_.erase(oldest);
  return released;
}

}  // namespace fettle::kubernetes
