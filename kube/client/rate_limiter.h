// RateLimiter: a token bucket. Up to `burst` calls at once, `per_second` on average. The caller
// passes the time, which must never go back. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>

namespace fettle::kube {

class RateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Starts full. `per_second`: 0 = no limit.
  RateLimiter(double per_second, int burst);

  // Takes a token, perhaps a future one: returns the time to wait before its use.
  std::chrono::microseconds take(Time now);

 private:
  const double per_second_;
  const double burst_;
  std::mutex mutex_;
  double tokens_;  // below 0: promised already
  Time counted_at_{};
};

}  // namespace fettle::kube
