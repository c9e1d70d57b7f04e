// PlanChooser: chooses one of a library's plans for a product or convolution. Heuristics rank plans
// without running them; here the first few are timed, once for each shape and kind of GPU, and the
// result is kept (plan_file.h).
//
// A plan affects the last bits of a result. So a choice stays as long as the file exists, and of
// two processes that time one key at once the second takes the first's plan: all trials that share
// the file run the same plans. FETTLE_CUDA_PLANS=first runs the plan that the heuristics rank
// first, and times nothing. One thread; decides by given numbers only. Plans that are not timed are
// run once before they are chosen (first_that_runs), because an engine may plan and then refuse to
// run.
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
  // Maximum number of plans of one key that are timed.
  static constexpr std::size_t kMostTimed = 8;
  // Fraction of the first-ranked plan's time below which another plan must be to replace it: the
  // fastest of several measurements is also the luckiest.
  static constexpr double kClearly = 0.97;

  // Returns the microseconds of one run of a candidate. Errors: it cannot be run.
  using Time = std::function<Result<double>(std::size_t candidate)>;
  // Shared storage of choices: `keep` is offered each choice and returns the one that stays, and
  // `read` returns the choices that others have kept.
  struct Shared {
    std::function<TimedPlan(const std::string& key, const TimedPlan& plan)> keep;
    std::function<TimedPlans()> read;
  };

  PlanChooser(bool times, Shared shared) : times_(times), shared_(std::move(shared)) {}

  // Whether candidates beyond the first that runs are useful.
  bool times() const { return times_; }

  // The plan chosen for `key` before, here or elsewhere; nullptr if none was.
  const TimedPlan* known(const std::string& key);

  // Chooses the plan for `key` from `names`, which are in the library's order; returns its index. A
  // candidate that cannot be run is skipped. Errors: the first candidate's, if none can be run.
  Result<std::size_t> choose(const std::string& key, std::span<const std::string> names,
                             const Time& microseconds);

 private:
  TimedPlans known_;
  const bool times_;
  const Shared shared_;
};

// Returns the first of `count` plans that can be run, in the library's order. Errors: the first
// plan's, if none can be run.
Result<std::size_t> first_that_runs(std::size_t count,
                                    const std::function<Status(std::size_t candidate)>& run);

// Whether the plan that rounds nothing is preferred to one that rounds its result to 16 bits. Takes
// the microseconds of both; nullopt: not timed. Exactness may cost 15 %.
bool takes_exact(std::optional<double> exact, std::optional<double> rounded);

}  // namespace fettle::kernels::cuda
