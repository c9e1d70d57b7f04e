#include "kube/client/rate_limiter.h"

#include <gtest/gtest.h>

namespace fettle::kube {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

const RateLimiter::Time kStart{std::chrono::hours(1)};

TEST(RateLimiter, LetsABurstThroughAndThenTheRate) {
  RateLimiter limiter(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.take(kStart), microseconds(0)) << i;
  EXPECT_EQ(limiter.take(kStart), milliseconds(100));
  EXPECT_EQ(limiter.take(kStart), milliseconds(200));
  EXPECT_EQ(limiter.take(kStart + milliseconds(300)), microseconds(0));
  EXPECT_EQ(limiter.take(kStart + milliseconds(300)), milliseconds(100));
}

TEST(RateLimiter, RestEarnsNoMoreThanABurst) {
  RateLimiter limiter(10, 2);
  (void)limiter.take(kStart);
  const auto later = kStart + std::chrono::hours(1);
  EXPECT_EQ(limiter.take(later), microseconds(0));
  EXPECT_EQ(limiter.take(later), microseconds(0));
  EXPECT_EQ(limiter.take(later), milliseconds(100));
}

TEST(RateLimiter, WithoutARateNobodyWaits) {
  RateLimiter limiter(0, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limiter.take(kStart), microseconds(0));
}

}  // namespace
}  // namespace fettle::kube
