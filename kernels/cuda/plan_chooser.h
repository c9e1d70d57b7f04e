// PlanChooser: which of a library's plans is run for one product or convolution. Heuristics rank
// plans without running them; here the first few are timed, once for each shape and kind of GPU,
// and the result is kept (plan_file.h).
//
// A plan decides about the last bits of a result. So what was chosen once stays chosen, as long as
// the file is there; FETTLE_CUDA_PLANS=first runs what the heuristics rank first, and times
// nothing. One thread; decides by the numbers that it is given.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/cuda/plan_file.h"

namespace fettle::kernels::cuda {

class PlanChooser {
 public:
  // Plans of one key that are timed at most.
  static constexpr std::size_t kMostTimed = 8;
  // How much faster than the one that the library ranks first another plan must be to be taken:
  // the fastest of several measurements is also the luckiest one.
  static constexpr double kClearly = 0.97;

  // Microseconds of one run of a candidate. Errors: it cannot be run.
  using Time = std::function<Result<double>(std::size_t candidate)>;
  using Keep = std::function<void(const std::string& key, const TimedPlan& plan)>;

  // `known`: what was timed before. `keep` is told each new choice.
  PlanChooser(TimedPlans known, bool times, Keep keep)
      : known_(std::move(known)), times_(times), keep_(std::move(keep)) {}

  // Whether candidates beyond the first that runs are of any use.
  bool times() const { return times_; }

  // The plan that was chosen for `key` before; nullptr: none.
  const TimedPlan* known(const std::string& key) const;

  // Which of `names`, in the library's order, is run for `key` from now on. A candidate that cannot
  // be run is passed over. Errors: that of the first, where none can be run.
  Result<std::size_t> choose(const std::string& key, std::span<const std::string> names,
                             const Time& microseconds);

 private:
  TimedPlans known_;
  const bool times_;
  const Keep keep_;
};

}  // namespace fettle::kernels::cuda
