// Epochs that leave no checkpoint, because they are short and nothing needs one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "trainer/model/layer_configs.h"
#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

struct Outcome {
  Ending ending = Ending::kReached;
  std::vector<EpochReport> reports;
  std::vector<std::string> log;
  std::vector<float> weights;
};

// The epochs that left a checkpoint.
std::vector<std::int64_t> saved(const Outcome& done) {
  std::vector<std::int64_t> steps;
  for (const EpochReport& report : done.reports) {
    if (!report.checkpoint.empty()) steps.push_back(report.checkpoint_step);
  }
  return steps;
}

class ThinCheckpointsTest : public testing::Test {
 protected:
  ThinCheckpointsTest() {
    task_.config.data = write_synthetic(directory_, 400);
    task_.config.model.layers = {linear(16), simple(api::LayerType::kRelu), linear(4)};
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.global_batch = 32;  // 300 samples: ten steps an epoch
    task_.config.training.epochs = task_.until_epoch = 8;
    task_.checkpoints = directory_.file("checkpoints");
    task_.keep.newest = 8;
    task_.between_checkpoints = seconds(3);
  }

  // Each epoch takes one second of the test's clock. Stops after `steps` optimiser steps, if given.
  Outcome run(const TrainingTask& task, int steps = -1) {
    DataCache off("");
    const auto data = load_training_data(task.config.data, off);
    CHECK(data.ok(), "the test has written it");
    SingleProcess single;
    Outcome done;
    seconds clock{0};
    TrainingHooks hooks;
    hooks.now = [&clock] { return std::chrono::steady_clock::time_point(clock); };
    hooks.report = [&](const EpochReport& report) {
      done.reports.push_back(report);
      clock += seconds(1);
    };
    hooks.log = [&done](const std::string& line) { done.log.push_back(line); };
    hooks.should_stop = [&steps] { return steps >= 0 && --steps <= 0; };
    const auto training = Training::create(task, *data, single, hooks);
    CHECK(training.ok(), "nothing is in its way");
    const auto ending = (*training)->run();
    CHECK(ending.ok(), "nothing is in its way");
    done.ending = *ending;
    done.weights = (*training)->learner().network().parameters().weights.download();
    return done;
  }
  TrainingTask apart(const std::string& name) {
    TrainingTask task = task_;
    task.checkpoints = directory_.file(name);
    return task;
  }

  TemporaryDirectory directory_;
  TrainingTask task_;
};

TEST_F(ThinCheckpointsTest, OnlyTheLastOfShortEpochsAndSomeBetween) {
  const Outcome done = run(task_);
  EXPECT_EQ(done.reports.size(), 8U);
  EXPECT_THAT(saved(done), ElementsAre(4, 7, 8));
  EXPECT_TRUE(std::filesystem::exists(done.reports.back().checkpoint));

  TrainingTask all = apart("all");
  all.between_checkpoints = {};
  EXPECT_THAT(saved(run(all)), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

// Others start there, also where this training would not save yet.
TEST_F(ThinCheckpointsTest, ARungLeavesOne) {
  task_.keep.rungs = {2, 3};
  EXPECT_THAT(saved(run(task_)), ElementsAre(2, 3, 6, 8));
}

// All but the last of an epoch's ten steps ask whether to stop; its end asks in their place.
TEST_F(ThinCheckpointsTest, AStopAtTheEndOfAnEpochLeavesOne) {
  const Outcome whole = run(apart("whole"));
  const Outcome half = run(task_, 10);
  EXPECT_EQ(half.ending, Ending::kStopped);
  EXPECT_THAT(saved(half), ElementsAre(1));
  ASSERT_EQ(half.reports.size(), 2U);
  EXPECT_TRUE(half.reports.back().metrics.empty()) << "the line before has them";
  EXPECT_THAT(half.reports.back().checkpoint, testing::HasSubstr("update-10.epoch-1.checkpoint"));
  const Outcome rest = run(task_);
  EXPECT_EQ(rest.reports.front().step, 1) << "the resumed epoch, once more";
  EXPECT_EQ(rest.weights, whole.weights);
}

TEST_F(ThinCheckpointsTest, AStopWithinAnEpochLeavesOne) {
  const Outcome half = run(task_, 14);
  EXPECT_EQ(half.ending, Ending::kStopped);
  EXPECT_THAT(saved(half), ElementsAre(1));
  EXPECT_THAT(half.reports.back().checkpoint, testing::HasSubstr("update-14.checkpoint"));
}

// Killed where the newest epochs had left none.
TEST_F(ThinCheckpointsTest, EpochsWithoutOneAreTrainedAgainAlike) {
  const Outcome whole = run(task_);
  for (const std::int64_t later : {1, 0}) {
    std::filesystem::remove(whole.reports[static_cast<std::size_t>(6 + later)].checkpoint);
  }
  const Outcome again = run(task_);
  EXPECT_THAT(again.log.front(), testing::HasSubstr("epoch-4.checkpoint"));
  EXPECT_EQ(again.reports.front().step, 4);
  EXPECT_EQ(again.reports.size(), 5U);
  EXPECT_EQ(again.weights, whole.weights);
}

}  // namespace
}  // namespace fettle::trainer
