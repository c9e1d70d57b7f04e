// Waiting and admission of the runs of one Session, without processes.
#include "runtime/local/run/run_queue.h"

#include <gtest/gtest.h>

#include <atomic>

namespace fettle::local {
namespace {

using Runs = std::vector<RunKey>;

constexpr Need kOneCore{0, 1, 0};
const RunKey kA{"a", 1};
const RunKey kB{"b", 1};
const RunKey kC{"c", 1};

std::unique_ptr<Claims> two_cores(std::int64_t runs = 100) {
  Room room;
  room.cores = 2;
  room.runs = runs;
  return std::make_unique<Claims>("s", room, /*directory=*/"");
}

TEST(RunQueue, ARunWaitsUntilItIsAdmitted) {
  RunQueue queue(two_cores());
  for (const RunKey& run : {kA, kB, kC}) EXPECT_TRUE(queue.wait(run));
  EXPECT_EQ(queue.due(), (Runs{kA, kB, kC}));
  EXPECT_TRUE(queue.admit(kA, kOneCore).ok());
  EXPECT_TRUE(queue.admit(kB, kOneCore).ok());
  EXPECT_EQ(queue.admit(kC, kOneCore).shortage.text(),
            "it needs 1 core, and 0 of 2 are free (study s: 2)");
  EXPECT_EQ(queue.due(), Runs{kC});
  queue.release(kA);
  EXPECT_TRUE(queue.admit(kC, kOneCore).ok());
  EXPECT_FALSE(queue.waits(kC));
  EXPECT_EQ(queue.due(), Runs{});
}

TEST(RunQueue, ARunIsNotDueBeforeItsPauseAndKeepsItsPlace) {
  RunQueue queue(two_cores());
  EXPECT_TRUE(queue.wait(kA, std::chrono::hours(1)));
  EXPECT_TRUE(queue.wait(kB));
  EXPECT_EQ(queue.due(), Runs{kB});
  EXPECT_TRUE(queue.wait(kA));
  EXPECT_EQ(queue.due(), (Runs{kA, kB}));
}

TEST(RunQueue, OpenFilesLimitTheAdmittedRuns) {
  RunQueue queue(two_cores(/*runs=*/1));
  EXPECT_TRUE(queue.wait(kB));
  EXPECT_TRUE(queue.admit(kA, kOneCore).ok());
  EXPECT_EQ(queue.admit(kB, kOneCore).shortage.text(),
            "the limit on open files (ulimit -Hn) is enough for 1 trials at once");
  EXPECT_TRUE(queue.waits(kB));
  queue.release(kA);
  EXPECT_TRUE(queue.admit(kB, kOneCore).ok());
}

TEST(RunQueue, AWorkerKeepsTheRoomOfItsFirstRun) {
  const RunKey worker{"worker", 1};
  RunQueue queue(two_cores());
  ASSERT_TRUE(queue.admit(kA, {0, 2, 0}).ok());
  queue.give_to(kA, worker);
  queue.release(kA);  // the run has ended
  EXPECT_FALSE(queue.admit(kB, kOneCore).ok());
  queue.release(worker);
  EXPECT_TRUE(queue.admit(kB, kOneCore).ok());
}

TEST(RunQueue, NoRunBeginsToWaitOnceItIsClosed) {
  RunQueue queue(two_cores());
  EXPECT_TRUE(queue.wait(kA));
  queue.close();
  EXPECT_TRUE(queue.is_closed());
  EXPECT_FALSE(queue.wait(kB));
  EXPECT_EQ(queue.drop_waiting(), Runs{kA});
  EXPECT_FALSE(queue.waits(kA));
}

TEST(RunQueue, ServesWhenItIsWoken) {
  RunQueue queue(two_cores());
  std::atomic<bool> served = false;
  ASSERT_TRUE(queue
                  .start([&] {
                    served = true;
                    served.notify_all();
                    return false;
                  })
                  .ok());
  queue.wake();  // without it the thread sleeps for minutes, since no run waits
  served.wait(false);
  queue.close();
}

}  // namespace
}  // namespace fettle::local
