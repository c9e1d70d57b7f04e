// Backoff: exponential back-off with jitter. The delay after the n-th failure in a row doubles up
// to a limit; up to 100 % of it is added at random, so that many clients do not retry together. A
// pure value: time and random numbers are arguments.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/philox.h"

namespace fettle::kube {

struct BackoffRules {
  std::chrono::milliseconds first;
  std::chrono::milliseconds most;
  std::chrono::milliseconds forget;  // without a failure for this long, a row of failures ends
};

struct Backoff {
  int failures = 0;
  std::chrono::milliseconds failed_at{0};

  // Counts a failure at `now`, and returns the time to wait.
  std::chrono::milliseconds next(const BackoffRules& rules, std::chrono::milliseconds now,
                                 Random& random) {
    if (now - failed_at >= rules.forget) failures = 0;
    failed_at = now;
    auto wait = rules.first;
    for (int i = 0; i < failures && wait < rules.most; ++i) wait *= 2;
    ++failures;
    wait = std::min(wait, rules.most);
    const double extra = random.uniform() * static_cast<double>(wait.count());
    return wait + std::chrono::milliseconds(static_cast<std::int64_t>(extra));
  }
};

}  // namespace fettle::kube
