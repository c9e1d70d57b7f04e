// Which errors form a row of refusals, and when an object counts as blocked.
#include "core/control/refusals.h"

#include <gtest/gtest.h>

namespace fettle::control {
namespace {

const Item kStudyItem{Kind::kStudy, {"team", "digits"}};
const Item kTrialItem{Kind::kTrial, {"team", "digits-3"}};
const Key kStudy{"team", "digits"};

Error quota(int used) {
  return {ErrorCode::kForbidden, "create Trial: exceeded quota, used: " + std::to_string(used)};
}

TEST(Refusals, AlikeRefusalsAreInARowAndBlockAfterAWhile) {
  Refusals refused;
  EXPECT_EQ(refused.add(kStudyItem, kStudy, quota(5), 0), 1);
  EXPECT_EQ(refused.add(kStudyItem, kStudy, quota(6), 10), 2) << "numbers aside";
  EXPECT_EQ(refused.add(kStudyItem, kStudy, quota(6), 20), 3);
  EXPECT_EQ(refused.of_study(kStudy), "") << "it may pass by itself";
  EXPECT_EQ(refused.add(kStudyItem, kStudy, quota(7), kBlockedAfterMs), 4);
  EXPECT_EQ(refused.of_study(kStudy), quota(7).message);
  EXPECT_EQ(refused.blocked(), 1u);
}

TEST(Refusals, FailuresOfTheEnvironmentCountForAnyReason) {
  Refusals refused;
  const Error disk{ErrorCode::kIo, "no space left on device"};
  const Error other{ErrorCode::kIo, "input/output error"};
  refused.add(kStudyItem, kStudy, disk, 0);
  EXPECT_EQ(refused.count_failure(kStudyItem), 1);
  refused.add(kStudyItem, kStudy, quota(5), 1);  // one that passes neither counts nor ends the row
  EXPECT_EQ(refused.add(kStudyItem, kStudy, other, 2), 1);
  EXPECT_EQ(refused.count_failure(kStudyItem), 2);
  refused.remove(kStudyItem);
  refused.add(kStudyItem, kStudy, disk, 3);
  EXPECT_EQ(refused.count_failure(kStudyItem), 1);
}

TEST(Refusals, TwoRefusalsAreNotEnoughHoweverLongTheyTake) {
  Refusals refused;
  refused.add(kStudyItem, kStudy, quota(5), 0);
  refused.add(kStudyItem, kStudy, quota(5), 60'000);
  EXPECT_EQ(refused.of_study(kStudy), "");
}

TEST(Refusals, AnotherReasonOrCodeBeginsAnew) {
  Refusals refused;
  refused.add(kStudyItem, kStudy, quota(5), 0);
  refused.add(kStudyItem, kStudy, quota(5), 1);
  const Error other{ErrorCode::kForbidden, "denied by a webhook"};
  EXPECT_EQ(refused.add(kStudyItem, kStudy, other, 2), 1);
  EXPECT_EQ(refused.add(kStudyItem, kStudy, {ErrorCode::kUnavailable, other.message}, 3), 1);
}

TEST(Refusals, ConflictsBlockOnlyIfTheyDoNotEnd) {
  Refusals refused;
  const Error conflict{ErrorCode::kConflict, "the object has been modified"};
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(refused.add(kTrialItem, kStudy, conflict, i * 1'000), 0) << "the next may succeed";
  }
  EXPECT_EQ(refused.of_study(kStudy), "");
  EXPECT_EQ(refused.add(kTrialItem, kStudy, conflict, kBlockedByConflictsMs), 21);
  EXPECT_EQ(refused.of_study(kStudy), conflict.message);
  EXPECT_TRUE(refused.is_blocked(kTrialItem));
  EXPECT_FALSE(refused.is_blocked(kStudyItem));
}

TEST(Refusals, ATrialBlocksItsStudyUntilItIsSeenToGoOn) {
  Refusals refused;
  for (int i = 0; i < kBlockedAfter; ++i) {
    refused.add(kTrialItem, kStudy, quota(5), i * kBlockedAfterMs);
  }
  EXPECT_NE(refused.of_study(kStudy), "");
  EXPECT_FALSE(refused.remove(kStudyItem)) << "another object";
  EXPECT_NE(refused.of_study(kStudy), "");
  EXPECT_EQ(refused.remove(kTrialItem), kStudy);
  EXPECT_EQ(refused.of_study(kStudy), "");
  EXPECT_EQ(refused.blocked(), 0u);
}

}  // namespace
}  // namespace fettle::control
