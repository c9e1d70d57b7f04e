// The order in which logs are read.
#include "runtime/kubernetes/log/log_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace fettle::kubernetes {
namespace {

constexpr std::int64_t kNow = 1'000'000;

LogQueue::Request due(std::int64_t after_ms = 0) { return {kNow + after_ms, false, false}; }

TEST(LogQueue, NobodyIsReadBeforeItIsDueOrTwiceAtOnce) {
  LogQueue queue(1'000, 2);
  EXPECT_FALSE(queue.next_ms());
  queue.enqueue("a", "team", "digits", due(5));
  EXPECT_EQ(queue.next_ms(), kNow + 5);
  EXPECT_FALSE(queue.take(kNow));
  EXPECT_EQ(queue.take(kNow + 5), "a");
  queue.enqueue("a", "team", "digits", due());
  EXPECT_FALSE(queue.take(kNow + 10)) << "it is in flight";
  queue.done("a");
  EXPECT_EQ(queue.take(kNow + 10), "a");
  queue.remove("a");
  queue.done("a");
  EXPECT_FALSE(queue.take(kNow + 20));
}

TEST(LogQueue, NamespacesTakeTurnsHoweverManyStudiesTheyHave) {
  LogQueue queue(1'000, 2);
  for (int i = 0; i < 100; ++i) {
    queue.enqueue("big" + std::to_string(i), "big", "s" + std::to_string(i), due());
  }
  for (int i = 0; i < 3; ++i) queue.enqueue("small" + std::to_string(i), "small", "s", due());
  int small = 0;
  for (int i = 0; i < 6; ++i) small += queue.take(kNow + i)->rfind("small", 0) == 0 ? 1 : 0;
  EXPECT_EQ(small, 3);
}

TEST(LogQueue, StudiesOfANamespaceTakeTurnsToo) {
  LogQueue queue(1'000, 2);
  for (int i = 0; i < 100; ++i) queue.enqueue("big" + std::to_string(i), "team", "big", due());
  queue.enqueue("small", "team", "small", due());
  (void)queue.take(kNow);
  EXPECT_EQ(queue.take(kNow + 1), "small");
}

TEST(LogQueue, PodsThatHaveEndedComeFirstThenWhoWaitsLongest) {
  LogQueue queue(1'000, 2);
  queue.enqueue("late", "team", "s", due(-1));
  queue.enqueue("early", "team", "s", due(-9));
  queue.enqueue("ended", "team", "s", {kNow, true, false});
  EXPECT_EQ(queue.take(kNow), "ended");
  EXPECT_EQ(queue.take(kNow + 1), "early");
  EXPECT_EQ(queue.take(kNow + 2), "late");
}

TEST(LogQueue, CallsAreBoundedAndUnusedTimeIsSavedForASecondOnly) {
  LogQueue queue(10, 4);
  for (int i = 0; i < 100; ++i) queue.enqueue(std::to_string(i), "team", "s", due());
  const auto calls_until = [&](std::int64_t end_ms) {
    int calls = 0;
    for (std::int64_t now = kNow; now <= end_ms; ++now) calls += queue.take(now) ? 1 : 0;
    return calls;
  };
  EXPECT_EQ(calls_until(kNow), 1);
  EXPECT_LE(calls_until(kNow + 5'000), 10 + 50);
  EXPECT_GE(calls_until(kNow + 6'000), 9);
}

TEST(LogQueue, ANodeThatDoesNotAnswerHoldsUpItsOwnPodsOnly) {
  LogQueue queue(1'000, 4);
  for (int i = 0; i < 10; ++i)
    queue.enqueue("sick" + std::to_string(i), "a", "s", {kNow, false, true});
  queue.enqueue("well", "b", "s", due());
  std::map<std::string, int> taken;
  for (int i = 0; i < 10; ++i) {
    if (const auto id = queue.take(kNow + i)) ++taken[id->substr(0, 4)];
  }
  EXPECT_EQ(taken["sick"], 2);
  EXPECT_EQ(taken["well"], 1);
  queue.done("sick0");
  EXPECT_TRUE(queue.take(kNow + 20));
}

}  // namespace
}  // namespace fettle::kubernetes
