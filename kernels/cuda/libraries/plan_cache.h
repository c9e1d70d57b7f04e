// PlanCache: a library's plans for each number of samples that an operation has met: the largest,
// and the remainder of an epoch. Bounded: the least recently used plan is dropped, and with it the
// state that a recorded graph may still launch. So the bound is far above the handful of sizes in a
// training. Belongs to one thread.
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

  // Stores the first plan, for the largest number of samples, when its error can still be reported.
  void put(std::int64_t samples, std::unique_ptr<Plan> plan) {
    find(samples, [&](std::int64_t) { return std::move(plan); });
  }

  // Returns the plan for `samples`, from make(samples) if it is new: a std::unique_ptr<Plan>.
  // nullptr (no plan) is stored, too. Valid until the next call.
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
  std::list<Entry> entries_;  // the most recently used comes first
};

}  // namespace fettle::kernels::cuda
