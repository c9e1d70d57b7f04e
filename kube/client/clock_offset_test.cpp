#include "kube/client/clock_offset.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace fettle::kube {
namespace {

constexpr std::int64_t kMinute = 60'000;

// Returns the header's value for that time.
std::int64_t date(std::int64_t ms) { return ms / 1000 * 1000; }

TEST(ClockOffset, StaysZeroWhileTheClocksAgreeToASecond) {
  ClockOffset offset;
  for (std::int64_t ms = 0; ms < 5'000; ms += 50) {
    for (const std::int64_t ahead : {-990, 0, 990}) {
      offset.note(date(1'000'000 + ms + ahead), 1'000'000 + ms, 1'000'000 + ms + 10);
    }
  }
  EXPECT_EQ(offset.ms(), 0);
}

TEST(ClockOffset, IsKnownToTwoSecondsAfterTheFirstAnswer) {
  for (const std::int64_t ahead : {-5 * kMinute, -3'100L, 3'100L, 5 * kMinute}) {
    for (std::int64_t ms = 0; ms < 1'000; ms += 90) {
      ClockOffset offset;
      const std::int64_t now = 10 * kMinute + ms;
      offset.note(date(now + ahead), now, now + 10);
      EXPECT_NEAR(static_cast<double>(offset.ms()), static_cast<double>(ahead), 2'010) << ms;
      EXPECT_NE(offset.ms(), 0);
    }
  }
}

TEST(ClockOffset, IsNotMovedByAnAnswerThatTookLong) {
  ClockOffset offset;
  offset.note(15 * kMinute, 10 * kMinute, 10 * kMinute);
  const std::int64_t before = offset.ms();
  offset.note(16 * kMinute, 11 * kMinute, 12 * kMinute);  // written when it was asked for
  offset.note(18 * kMinute, 12 * kMinute, 13 * kMinute);  // written when it came
  EXPECT_EQ(offset.ms(), before);
}

TEST(ClockOffset, FollowsAClockThatIsSet) {
  ClockOffset offset;
  offset.note(15 * kMinute, 10 * kMinute, 10 * kMinute);
  offset.note(11 * kMinute, 11 * kMinute, 11 * kMinute);
  EXPECT_LE(std::abs(offset.ms()), 2'000);
}

}  // namespace
}  // namespace fettle::kube
