// The semantics of client-go's work queue.
#include "core/control/work_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/control/in_flight.h"

namespace fettle::control {
namespace {

const Item kA{Kind::kTrial, {"", "a"}};
const Item kB{Kind::kTrial, {"", "b"}};

TEST(WorkQueue, ABurstOfAdditionsIsOneLook) {
  WorkQueue queue;
  queue.add(kA);
  queue.add(kA);
  EXPECT_EQ(queue.take(0), kA);
  queue.done(kA);
  EXPECT_EQ(queue.take(0), std::nullopt);
}

TEST(WorkQueue, ReturnsItemsInTheOrderOfAdditions) {
  WorkQueue queue;
  queue.add(kB);
  queue.add(kA);
  EXPECT_EQ(queue.take(0), kB);
  EXPECT_EQ(queue.take(0), kA);
}

TEST(WorkQueue, AnItemAddedWhileItIsProcessedComesBackOnce) {
  WorkQueue queue;
  queue.add(kA);
  ASSERT_EQ(queue.take(0), kA);
  queue.add(kA);
  queue.add(kA);
  EXPECT_EQ(queue.take(0), std::nullopt) << "never two looks at one item at the same time";
  queue.done(kA);
  EXPECT_EQ(queue.take(0), kA);
  queue.done(kA);
  EXPECT_EQ(queue.take(0), std::nullopt);
}

TEST(WorkQueue, ADelayedItemWaitsAndKeepsItsEarliestTime) {
  WorkQueue queue;
  queue.add_at(kA, 100);
  queue.add_at(kA, 50);
  queue.add_at(kA, 200);
  EXPECT_EQ(queue.next_ms(), 50);
  EXPECT_EQ(queue.take(49), std::nullopt);
  EXPECT_EQ(queue.take(50), kA);
  queue.done(kA);
  EXPECT_EQ(queue.next_ms(), std::nullopt) << "the later times are gone";
}

TEST(WorkQueue, RetriesBackOffUntilForgotten) {
  WorkQueue queue;
  EXPECT_EQ(queue.retry(kA, 0), 1);
  EXPECT_EQ(queue.next_ms(), kMinRetryMs);
  ASSERT_EQ(queue.take(kMinRetryMs), kA);
  queue.done(kA);
  EXPECT_EQ(queue.retry(kA, 0), 2);
  EXPECT_EQ(queue.next_ms(), 2 * kMinRetryMs);
  queue.forget(kA);
  EXPECT_EQ(queue.retry(kA, 0), 1);
}

TEST(WorkQueue, BackOffHasALimit) {
  WorkQueue queue;
  for (int i = 0; i < 100; ++i) {
    queue.retry(kA, 0);
    ASSERT_TRUE(queue.take(kMaxRetryMs).has_value()) << "retry " << i;
    queue.done(kA);
  }
}

TEST(WorkQueue, ChangedItemsComeBeforeResyncedItems) {
  WorkQueue queue;
  queue.add(kA, Urgency::kLater);
  queue.add(kB);
  EXPECT_EQ(queue.depth(), 2u);
  EXPECT_EQ(queue.take(0), kB);
  EXPECT_EQ(queue.take(0), kA);
}

TEST(WorkQueue, ADelayedItemBecomesUrgentOnce) {
  WorkQueue queue;
  queue.add(kB, Urgency::kLater);
  queue.add(kA, Urgency::kLater);
  queue.add(kA);
  queue.add(kA, Urgency::kLater);
  EXPECT_EQ(queue.take(0), kA);
  queue.add(kA, Urgency::kLater);
  queue.add(kA);
  queue.done(kA);
  EXPECT_EQ(queue.take(0), kA) << "urgent since it was added while it was processed";
  queue.done(kA);
  EXPECT_EQ(queue.take(0), kB);
  EXPECT_EQ(queue.take(0), std::nullopt);
}

TEST(WorkQueue, ADelayedItemHasItsTurnAmongManyUrgentItems) {
  WorkQueue queue;
  queue.add(kA, Urgency::kLater);
  int takes = 0;
  do {
    queue.add(kB);
    const std::optional<Item> item = queue.take(0);
    queue.done(*item);
    ++takes;
    if (item == kA) break;
  } while (takes < 100);
  EXPECT_EQ(takes, kLaterEvery);
}

// One worker takes no Studies, whose reconciles may be long.
TEST(WorkQueue, TheLaneOfTrialsPassesStudiesBy) {
  WorkQueue queue;
  const Item study{Kind::kStudy, {"", "s"}};
  queue.add(study);
  queue.add(kA);
  queue.add(kB, Urgency::kLater);
  EXPECT_EQ(queue.take(0, Lane::kTrials), kA);
  EXPECT_EQ(queue.take(0, Lane::kTrials), kB);
  EXPECT_EQ(queue.take(0, Lane::kTrials), std::nullopt);
  EXPECT_EQ(queue.next_ms(Lane::kTrials), std::nullopt) << "nothing to wake up for";
  EXPECT_EQ(queue.next_ms(), 0);
  EXPECT_EQ(queue.take(0), study);
}

TEST(WorkQueue, OtherWorkersTakeBothInTheOrderOfAdditions) {
  WorkQueue queue;
  const Item first{Kind::kStudy, {"", "s"}};
  const Item last{Kind::kStudy, {"", "t"}};
  for (const Item& item : {first, kA, last}) queue.add(item);
  for (const Item& item : {first, kA, last}) EXPECT_EQ(queue.take(0), item);
}

// A thread that takes no Studies must not swallow the call that announces one.
TEST(BlockingQueue, AStudyWakesAWorkerThatTakesIt) {
  SystemClock clock;
  BlockingQueue queue(clock);
  const std::uint64_t seen = queue.wakes();
  std::thread lane([&] { queue.wait(60'000, seen, Lane::kTrials); });
  std::thread all([&] {
    queue.wait(60'000, seen);
    EXPECT_TRUE(queue.take().has_value());
    queue.wake();
  });
  queue.add({Kind::kStudy, {"", "s"}});
  all.join();
  lane.join();
}

TEST(InFlight, AWorkerThatGetsThingsDoneIsNotStuck) {
  class HandClock : public Clock {
   public:
    std::int64_t now_ms() override { return now; }
    std::int64_t now = 1'000;
  } clock;
  InFlight in_flight(clock);
  EXPECT_EQ(in_flight.oldest_ms(), 0);
  const InFlight::Scope scope(in_flight);
  for (int i = 0; i < 1'000; ++i) {
    clock.now += 300;
    EXPECT_LE(in_flight.oldest_ms(), 300);
    std::thread([&] { in_flight.progress(); }).join();  // this thread has no reconcile
    EXPECT_EQ(in_flight.oldest_ms(), 300);
    in_flight.progress();
  }
  clock.now += 300'000;
  EXPECT_EQ(in_flight.oldest_ms(), 300'000) << "a call that does not come back";
}

TEST(BlockingQueue, ManyThreadsAddAndOneTakesEverything) {
  SystemClock clock;
  BlockingQueue queue(clock);
  constexpr int kThreads = 4;
  constexpr int kItems = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&queue, t] {
      for (int i = 0; i < kItems; ++i) {
        queue.add({Kind::kTrial, {"", std::to_string(t) + "-" + std::to_string(i)}});
      }
    });
  }
  int taken = 0;
  while (taken < kThreads * kItems) {
    while (const std::optional<Item> item = queue.take()) {
      ++taken;
      queue.done(*item);
    }
    queue.wait(1'000, queue.wakes());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kThreads * kItems);
}

TEST(BlockingQueue, WakeEndsAWaitAtOnce) {
  SystemClock clock;
  BlockingQueue queue(clock);
  const std::uint64_t seen = queue.wakes();
  std::thread waker([&queue] { queue.wake(); });
  queue.wait(60'000, seen);
  waker.join();
}

TEST(BlockingQueue, WakeEndsTheWaitOfEveryThread) {
  SystemClock clock;
  BlockingQueue queue(clock);
  const std::uint64_t seen = queue.wakes();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&] { queue.wait(60'000, seen); });
  }
  queue.wake();
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(BlockingQueue, NothingGetsInAfterTheEnd) {
  SystemClock clock;
  BlockingQueue queue(clock);
  queue.shut_down();
  queue.add(kA);
  EXPECT_EQ(queue.take(), std::nullopt);
  queue.wait(60'000, queue.wakes());  // returns
}

}  // namespace
}  // namespace fettle::control
