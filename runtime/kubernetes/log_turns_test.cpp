// Whose log is read when.
#include "runtime/kubernetes/log_turns.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace fettle::kubernetes {
namespace {

constexpr std::int64_t kNow = 1'000'000;

LogTurns::Wish due(std::int64_t after_ms = 0) { return {kNow + after_ms, false, false}; }

TEST(LogTurns, NobodyIsReadBeforeItIsDueOrTwiceAtOnce) {
  LogTurns turns(1'000, 2);
  EXPECT_FALSE(turns.next_ms());
  turns.want("a", "team", "digits", due(5));
  EXPECT_EQ(turns.next_ms(), kNow + 5);
  EXPECT_FALSE(turns.take(kNow));
  EXPECT_EQ(turns.take(kNow + 5), "a");
  turns.want("a", "team", "digits", due());
  EXPECT_FALSE(turns.take(kNow + 10)) << "it is under way";
  turns.done("a");
  EXPECT_EQ(turns.take(kNow + 10), "a");
  turns.drop("a");
  turns.done("a");
  EXPECT_FALSE(turns.take(kNow + 20));
}

TEST(LogTurns, NamespacesTakeTurnsHoweverManyStudiesTheyHave) {
  LogTurns turns(1'000, 2);
  for (int i = 0; i < 100; ++i) {
    turns.want("big" + std::to_string(i), "big", "s" + std::to_string(i), due());
  }
  for (int i = 0; i < 3; ++i) turns.want("small" + std::to_string(i), "small", "s", due());
  int small = 0;
  for (int i = 0; i < 6; ++i) small += turns.take(kNow + i)->rfind("small", 0) == 0 ? 1 : 0;
  EXPECT_EQ(small, 3);
}

TEST(LogTurns, StudiesOfANamespaceTakeTurnsToo) {
  LogTurns turns(1'000, 2);
  for (int i = 0; i < 100; ++i) turns.want("big" + std::to_string(i), "team", "big", due());
  turns.want("small", "team", "small", due());
  (void)turns.take(kNow);
  EXPECT_EQ(turns.take(kNow + 1), "small");
}

TEST(LogTurns, PodsThatHaveEndedComeFirstThenWhoWaitsLongest) {
  LogTurns turns(1'000, 2);
  turns.want("late", "team", "s", due(-1));
  turns.want("early", "team", "s", due(-9));
  turns.want("ended", "team", "s", {kNow, true, false});
  EXPECT_EQ(turns.take(kNow), "ended");
  EXPECT_EQ(turns.take(kNow + 1), "early");
  EXPECT_EQ(turns.take(kNow + 2), "late");
}

TEST(LogTurns, CallsAreBoundedAndUnusedTimeIsSavedForASecondOnly) {
  LogTurns turns(10, 4);
  for (int i = 0; i < 100; ++i) turns.want(std::to_string(i), "team", "s", due());
  const auto calls_until = [&](std::int64_t end_ms) {
    int calls = 0;
    for (std::int64_t now = kNow; now <= end_ms; ++now) calls += turns.take(now) ? 1 : 0;
    return calls;
  };
  EXPECT_EQ(calls_until(kNow), 1);
  EXPECT_LE(calls_until(kNow + 5'000), 10 + 50);
  EXPECT_GE(calls_until(kNow + 6'000), 9);
}

TEST(LogTurns, ANodeThatDoesNotAnswerHoldsUpItsOwnPodsOnly) {
  LogTurns turns(1'000, 4);
  for (int i = 0; i < 10; ++i)
    turns.want("sick" + std::to_string(i), "a", "s", {kNow, false, true});
  turns.want("well", "b", "s", due());
  std::map<std::string, int> taken;
  for (int i = 0; i < 10; ++i) {
    if (const auto id = turns.take(kNow + i)) ++taken[id->substr(0, 4)];
  }
  EXPECT_EQ(taken["sick"], 2);
  EXPECT_EQ(taken["well"], 1);
  turns.done("sick0");
  EXPECT_TRUE(turns.take(kNow + 20));
}

}  // namespace
}  // namespace fettle::kubernetes
