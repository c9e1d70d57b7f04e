#include "kube/client/rate_limiter.h"

#include <algorithm>

namespace fettle::kube {

RateLimiter::RateLimiter(double per_second, int burst)
    : per_second_(per_second), burst_(std::max(1, burst)), tokens_(burst_) {}

std::chrono::microseconds RateLimiter::take(Time now) {
  using std::chrono::duration;
  if (per_second_ <= 0) return std::chrono::microseconds(0);
  const std::lock_guard lock(mutex_);
  if (counted_at_ != Time{}) {
    // Below 0 if another thread, with a later `now`, was first to lock.
    const double elapsed = duration<double>(now - counted_at_).count();
    tokens_ = std::min(burst_, tokens_ + std::max(0.0, elapsed) * per_second_);
  }
  counted_at_ = std::max(counted_at_, now);
  tokens_ -= 1;
  if (tokens_ >= 0) return std::chrono::microseconds(0);
  return std::chrono::ceil<std::chrono::microseconds>(duration<double>(-tokens_ / per_second_));
}

}  // namespace fettle::kube
