#include "kernels/cuda/libraries/plan_chooser.h"

#include <algorithm>
#include <optional>

namespace fettle::kernels::cuda {

const TimedPlan* PlanChooser::known(const std::string& key) {
  if (!times_) return nullptr;
  if (!known_.contains(key)) known_.merge(shared_.read());
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

Result<std::size_t> PlanChooser::choose(const std::string& key, std::span<const std::string> names,
                                        const Time& microseconds) {
  if (names.empty()) return not_found("there is no plan to choose from");
  if (!times_) return std::size_t{0};
  std::optional<std::size_t> best;
  double best_time = 0;
  double first_time = 0;  // of the first plan that runs
  std::optional<Error> why_not_the_first;
  for (std::size_t i = 0; i < std::min(names.size(), kMostTimed); ++i) {
    const Result<double> measured = microseconds(i);
    if (!measured.ok()) {
      if (!why_not_the_first) why_not_the_first = measured.error();
      continue;
    }
    if (!best) {
      best = i;
      best_time = first_time = *measured;
    } else if (*measured < best_time && *measured < first_time * kClearly) {
      best = i;
      best_time = *measured;
    }
  }
  if (!best) return *why_not_the_first;
  const TimedPlan mine{names[*best], best_time};
  const TimedPlan kept = shared_.keep(key, mine);  // another process's plan if it was earlier
  const auto at = std::find(names.begin(), names.end(), kept.plan);
  const bool is_here = at != names.end();  // false: it can no longer be built
  known_.insert_or_assign(key, is_here ? kept : mine);
  return is_here ? static_cast<std::size_t>(at - names.begin()) : *best;
}

Result<std::size_t> first_that_runs(std::size_t count,
                                    const std::function<Status(std::size_t)>& run) {
  if (count == 0) return not_found("there is no plan to choose from");
  std::optional<Error> why_not_the_first;
  for (std::size_t i = 0; i < count; ++i) {
    const Status done = run(i);
    if (done.ok()) return i;
    if (!why_not_the_first) why_not_the_first = done.error();
  }
  return *why_not_the_first;
}

bool takes_exact(std::optional<double> exact, std::optional<double> rounded) {
  constexpr double kMostForExactness = 1.15;
  if (!exact || !rounded) return true;
  return *exact <= kMostForExactness * *rounded;
}

}  // namespace fettle::kernels::cuda
