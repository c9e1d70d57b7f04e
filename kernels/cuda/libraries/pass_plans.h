// PassPlans: a library's plans for the two passes of an operation, by number of samples, and our
// own operation, which does a pass for which the library has no plan.
//
// Each pass is planned separately: for the largest number of samples when the operation is created
// and errors can still be reported; for any other number (the last batch of an epoch) when the pass
// first meets it. So an evaluation, which never goes backward, plans nothing backward. Belongs to
// one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "kernels/cuda/libraries/plan_cache.h"

namespace fettle::kernels::cuda {

template <class Forward, class Backward, class Own>
class PassPlans {
 public:
  // Plans a pass for a number of samples; nullopt: our own operation does it (plan_or_own).
  template <class Plan>
  using Make = std::function<Result<std::optional<Plan>>(std::int64_t samples)>;
  struct Makers {
    Make<Forward> forward;
    Make<Backward> backward;
    std::function<Result<std::unique_ptr<Own>>()> own;
  };

  explicit PassPlans(Makers makers) : makers_(std::move(makers)) {}

  // Plans the largest number of samples, and makes our own operation if a pass has no plan. Errors:
  // the makers'.
  Status prepare(std::int64_t most) {
    FETTLE_ASSIGN(std::optional<Forward> forward, makers_.forward(most));
    FETTLE_ASSIGN(std::optional<Backward> backward, makers_.backward(most));
    const bool complete = forward && backward;
    forward_.put(most, owned(std::move(forward)));
    backward_.put(most, owned(std::move(backward)));
    return complete ? success() : make_own();
  }

  // The plan of a pass; nullptr: our own operation does it. Valid until the next call.
  Forward* forward(std::int64_t samples) { return find(forward_, makers_.forward, samples); }
  Backward* backward(std::int64_t samples) { return find(backward_, makers_.backward, samples); }

  // Made when a pass first needs it, because its workspace is large.
  Own& own() {
    if (own_ == nullptr) {
      const Status made = make_own();
      CHECK(made.ok(), made.error().message);
    }
    return *own_;
  }
  // nullptr until a pass needs it.
  Own* own_if_made() { return own_.get(); }

 private:
  template <class Plan>
  static std::unique_ptr<Plan> owned(std::optional<Plan> plan) {
    return plan ? std::make_unique<Plan>(std::move(*plan)) : nullptr;
  }

  template <class Plan>
  static Plan* find(PlanCache<Plan>& cache, const Make<Plan>& make, std::int64_t samples) {
    return cache.find(samples, [&](std::int64_t count) {
      auto made = make(count);
      CHECK(made.ok(), made.error().message);
      return owned(std::move(made).value());
    });
  }

  Status make_own() {
    FETTLE_ASSIGN(own_, makers_.own());
    return success();
  }

  const Makers makers_;
  PlanCache<Forward> forward_;
  PlanCache<Backward> backward_;
  std::unique_ptr<Own> own_;
};

}  // namespace fettle::kernels::cuda
