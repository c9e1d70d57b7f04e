// Which worker a run goes to, and when a worker ends, as tables.
#include "runtime/local/worker/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::local {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kMiB = 1 << 20;
constexpr bool kWell = false;  // the run has not failed

RunKey run(std::int64_t number) { return {"digits-" + std::to_string(number), 0}; }

WorkerShape shape_with(std::vector<std::string> arguments, std::int64_t slots = 1) {
  WorkerShape shape;
  shape.arguments = std::move(arguments);
  shape.slots = slots;
  return shape;
}

const WorkerShape kTrain = shape_with({"train"});

// Trains that many runs, one after another, on a pool with one worker.
void train(WorkerPool& pool, std::int64_t runs, std::int64_t memory) {
  for (std::int64_t i = 0; i < runs; ++i) {
    const RunKey key = run(1'000 + i);
    if (!pool.place(key, kTrain)) pool.add(key, kTrain, 0);
    pool.release(key, kWell, memory, 0);
  }
}

TEST(WorkerPool, AFreeWorkerTakesTheNextRun) {
  WorkerPool pool;
  EXPECT_EQ(pool.place(run(1), kTrain), std::nullopt);
  EXPECT_EQ(pool.add(run(1), kTrain, 0), 1);
  EXPECT_EQ(pool.place(run(2), kTrain), std::nullopt) << "its one slot is taken";
  EXPECT_EQ(pool.release(run(1), kWell, 0, 10), 1);
  EXPECT_EQ(pool.release(run(1), kWell, 0, 10), std::nullopt) << "it has no run twice";
  EXPECT_EQ(pool.place(run(2), kTrain), 1);
  EXPECT_EQ(pool.worker_of(run(2)), 1);
  pool.erase(1);
  EXPECT_EQ(pool.worker_of(run(2)), std::nullopt);
  EXPECT_EQ(pool.add(run(3), kTrain, 0), 2) << "numbers are not used again";
}

TEST(WorkerPool, RunsSpreadOverTheSlotsOfAllWorkers) {
  WorkerPool pool;
  const WorkerShape two = shape_with({"train"}, 2);
  pool.add(run(1), two, 0);
  pool.add(run(2), two, 0);
  EXPECT_EQ(pool.place(run(3), two), 1);
  EXPECT_EQ(pool.place(run(4), two), 2) << "it has fewer runs";
  EXPECT_EQ(pool.place(run(5), two), std::nullopt);
}

TEST(WorkerPool, OnlyRunsOfOneShapeShareAWorker) {
  WorkerShape other_directory = kTrain;
  other_directory.directory = "elsewhere";
  WorkerShape other_limit = kTrain;
  other_limit.memory_limit = kMiB;
  WorkerShape other_variables = kTrain;
  other_variables.pass_environment = {"HF_TOKEN"};
  const WorkerShape other_arguments = shape_with({"train", "--lr=0.1"});
  struct Case {
    WorkerShape shape;
    bool takes_arguments;
    bool placed;
  };
  for (const Case& c : {Case{kTrain, false, true}, Case{other_directory, true, false},
                        Case{other_limit, true, false}, Case{other_variables, true, false},
                        Case{other_arguments, false, false}, Case{other_arguments, true, true}}) {
    WorkerPool pool;
    pool.add(run(1), kTrain, 0);
    pool.set_ready(1, c.takes_arguments);
    pool.release(run(1), kWell, 0, 0);
    EXPECT_EQ(pool.place(run(2), c.shape).has_value(), c.placed) << c.takes_arguments;
  }
}

TEST(WorkerPool, AWorkerEndsBetweenTwoRuns) {
  struct Case {
    const char* description;
    std::int64_t trained;
    std::int64_t memory_at_end;
    bool others_wait;
    std::int64_t now_ms;
    bool ends;
  };
  constexpr std::int64_t kMost = WorkerPool::kMostTrained;
  constexpr std::int64_t kAge = WorkerPool::kLeastAgeMs;
  constexpr std::int64_t kIdle = WorkerPool::kMostIdleMs;
  for (const Case& c : {Case{"nothing speaks against it", 10, 100 * kMiB, false, kAge, false},
                        Case{"it has trained many", kMost, 100 * kMiB, false, 0, true},
                        Case{"it has trained one less", kMost - 1, 100 * kMiB, false, 0, false},
                        Case{"it has grown a little", 10, 189 * kMiB, false, 0, false},
                        Case{"it has grown", 10, 190 * kMiB, false, 0, true},
                        Case{"nobody knows its first size", 1, 900 * kMiB, false, 0, false},
                        Case{"others wait, and it is young", 10, 100 * kMiB, true, kAge - 1, false},
                        Case{"others wait", 10, 100 * kMiB, true, kAge, true},
                        Case{"it has been idle for long", 10, 100 * kMiB, false, kIdle, true}}) {
    WorkerPool pool;
    train(pool, c.trained - 1, 100 * kMiB);
    train(pool, 1, c.memory_at_end);
    EXPECT_EQ(!pool.take_spent(c.others_wait, c.now_ms).empty(), c.ends) << c.description;
    EXPECT_EQ(pool.place(run(1), kTrain).has_value(), !c.ends) << c.description;
    EXPECT_THAT(pool.take_spent(c.others_wait, c.now_ms), IsEmpty()) << "it ends once";
  }
}

TEST(WorkerPool, AWorkerEndsAfterARunThatFailed) {
  WorkerPool pool;
  const WorkerShape two = shape_with({"train"}, 2);
  pool.add(run(1), two, 0);
  pool.place(run(2), two);
  pool.release(run(1), /*failed=*/true, 0, 0);
  EXPECT_EQ(pool.place(run(3), two), std::nullopt);
  EXPECT_THAT(pool.take_spent(false, 0), IsEmpty()) << "another run trains in it";
  pool.release(run(2), kWell, 0, 0);
  EXPECT_THAT(pool.take_spent(false, 0), ElementsAre(1));
}

TEST(WorkerPool, ABusyWorkerIsNeverTaken) {
  WorkerPool pool;
  pool.add(run(1), kTrain, 0);
  EXPECT_THAT(pool.take_spent(true, WorkerPool::kMostIdleMs), IsEmpty());
  EXPECT_EQ(pool.take_idle(), std::nullopt);
  EXPECT_FALSE(pool.has_idle());
}

// A grown worker with several slots gets no further run, and ends when the others have ended.
TEST(WorkerPool, AGrownWorkerDrainsBeforeItEnds) {
  WorkerPool pool;
  const WorkerShape two = shape_with({"train"}, 2);
  pool.add(run(0), two, 0);
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(pool.place(run(i), two), 1);
    pool.release(run(i), kWell, (i < 4 ? 100 : 300) * kMiB, 0);
  }
  EXPECT_EQ(pool.place(run(9), two), std::nullopt);
  EXPECT_THAT(pool.take_spent(false, 0), IsEmpty());
  pool.release(run(0), kWell, 300 * kMiB, 0);
  EXPECT_THAT(pool.take_spent(false, 0), ElementsAre(1));
}

// A run that needs a process of its own waits for the room of a worker.
TEST(WorkerPool, RoomIsMadeByTheNextIdleWorker) {
  WorkerPool pool;
  pool.add(run(1), kTrain, 0);
  pool.add(run(2), kTrain, 0);
  EXPECT_EQ(pool.make_room(), std::nullopt) << "both are busy";
  pool.release(run(2), kWell, 0, 0);
  EXPECT_EQ(pool.place(run(3), kTrain), std::nullopt) << "its room is promised";
  EXPECT_THAT(pool.take_spent(false, 0), ElementsAre(2));
  pool.release(run(1), kWell, 0, 0);
  EXPECT_THAT(pool.take_spent(false, 0), IsEmpty()) << "one worker is enough";
  EXPECT_EQ(pool.make_room(), 1);
  EXPECT_EQ(pool.make_room(), std::nullopt);
}

TEST(WorkerPool, TheViewNamesTheRuns) {
  WorkerPool pool;
  pool.add(run(1), kTrain, 0);
  EXPECT_THAT(pool.views(), ElementsAre(WorkerView{1, 0, 0, {"digits-1-r0"}}));
  pool.release(run(1), kWell, kMiB, 0);
  EXPECT_THAT(pool.views(), ElementsAre(WorkerView{1, 1, kMiB, {}}));
}

}  // namespace
}  // namespace fettle::local
