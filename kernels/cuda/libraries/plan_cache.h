// PlanCache: what a library planned for each number of samples that an operation has met: the
// largest, and the remainder of an epoch. Bounded: the plan that was asked for the longest ago
// makes room, and with it what a recorded graph may still launch of it. So the bound is far above
// the handful of sizes that a training has. Belongs to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

namespace fettle::kernels::cuda {

template <class Plan>
class PlanCache {
 public:
  static constexpr std::size_t kMostPlans = 32;

  // Makes the first one, for the largest number of samples, where its error can still be told.
  void put(std::int64_t samples, std::unique_ptr<Plan> plan) {
    find(samples, [&](std::int64_t) { return std::move(plan); });
  }

  // The plan for `samples`, by make(samples) if it is new: a std::unique_ptr<Plan>, nullptr if
  // there is none, which is remembered, too. Valid until the next call.
  template <class Make>
  Plan* find(std::int64_t samples, Make make) {
    const auto at = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.first == samples; });
    if (at != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, at);
    } else {
      if (entries_.size() == kMostPlans) entries_.pop_back();
      entries_.emplace_front(samples, make(samples));
    }
    return entries_.front().second.get();
  }

 private:
  using Entry = std::pair<std::int64_t, std::unique_ptr<Plan>>;
  std::list<Entry> entries_;  // the last one asked for comes first
};

}  // namespace fettle::kernels::cuda
