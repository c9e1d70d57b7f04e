// PlanChooser: which of a library's plans is run for one product or convolution. Heuristics rank
// plans without running them; here the first few are timed, once for each shape and kind of GPU,
// and the result is kept (plan_file.h).
//
// A plan decides about the last bits of a result. So what was chosen once stays chosen, as long as
// the file is there, and of two processes that time one key at once the second takes the plan of
// the first: all trials that share the file run the same plans. FETTLE_CUDA_PLANS=first runs what
// the heuristics rank first, and times nothing. One thread; decides by the numbers that it is
// given. What is not timed is run once before it is taken (first_that_runs): an engine may plan and
// then refuse to run.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/cuda/libraries/plan_file.h"

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
  // Where choices are shared: each is offered to `keep`, which gives back the one that stays, and
  // `read` tells what others have kept by now.
  struct Shared {
    std::function<TimedPlan(const std::string& key, const TimedPlan& plan)> keep;
    std::function<TimedPlans()> read;
  };

  PlanChooser(bool times, Shared shared) : times_(times), shared_(std::move(shared)) {}

  // Whether candidates beyond the first that runs are of any use.
  bool times() const { return times_; }

  // The plan that was chosen for `key` before, here or elsewhere; nullptr: none.
  const TimedPlan* known(const std::string& key);

  // Which of `names`, in the library's order, is run for `key` from now on. A candidate that cannot
  // be run is passed over. Errors: that of the first, where none can be run.
  Result<std::size_t> choose(const std::string& key, std::span<const std::string> names,
                             const Time& microseconds);

 private:
  TimedPlans known_;
  const bool times_;
  const Shared shared_;
};

// The first of `count` plans that can be run, in the library's order. Errors: that of the first,
// where none can be run.
Result<std::size_t> first_that_runs(std::size_t count,
                                    const std::function<Status(std::size_t candidate)>& run);

// Whether the plan that rounds nothing is taken beside one that rounds its result to 16 bits. By
// the microseconds of both; nothing: it was not timed. Exactness may cost 15 %.
bool takes_exact(std::optional<double> exact, std::optional<double> rounded);

}  // namespace fettle::kernels::cuda
