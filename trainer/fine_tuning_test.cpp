// Trainings that start from a file's weights, with frozen layers and layerDecay, by one worker and
// by several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/run_training.h"
#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::Contains;
using testing::HasSubstr;

// Layers 0 to 3 are a backbone: two convolutions, each with its norm.
std::vector<api::LayerConfig> layers_with_head() {
  const auto norm = simple(LayerType::kBatchNorm);
  return {conv(3), norm, conv(4), norm, simple(LayerType::kRelu), dropout(0.1), linear(4)};
}

class FineTuningTest : public testing::Test {
 protected:
  FineTuningTest() {
    task_.config.data = write_synthetic(directory_, 200);
    task_.config.model.layers = layers_with_head();
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.optimizer = api::OptimizerKind::kAdam;
    task_.config.training.global_batch = 25;
    task_.config.training.norm_group = 5;
    task_.config.training.epochs = task_.until_epoch = 3;
    task_.seed = 5;
  }

  // Rank 0's end; all workers have the same weights.
  RanTraining run_world(const TrainingTask& task, std::int64_t world_size) {
    RanTraining ran = run_training(task, {.world_size = world_size});
    EXPECT_EQ(ran.error, "");
    for (const auto& one : ran.weights) EXPECT_EQ(one, ran.weights[0]);
    return ran;
  }

  // Trains for two epochs, and exports the network; returns the file.
  std::string trained_file(std::uint64_t seed = 9) {
    TrainingTask task = task_;
    task.seed = seed;
    task.config.training.epochs = task.until_epoch = 2;
    task.checkpoints.clear();
    const RanTraining ran = run_training(task);
    EXPECT_EQ(ran.error, "");
    first_ = ran.last;
    const std::string path = directory_.file("start.safetensors");
    write_model(ran.last, path);
    return path;
  }

  NetworkPlan plan() const {
    return *plan_network(task_.config, {{8, 8, 1}, SyntheticImages::kClasses, false, ""});
  }

  TemporaryDirectory directory_;
  TrainingTask task_;
  Checkpoint first_;  // of trained_file()
};

bool same_block(const Block& block, const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin() + block.offset, a.begin() + block.offset + block.count,
                    b.begin() + block.offset);
}

TEST_F(FineTuningTest, FrozenLayersKeepTheirBits) {
  task_.config.model.from = {.file = trained_file(), .fresh = {"head"}};
  task_.config.model.freeze = 4;
  for (const bool recompute : {false, true}) {
    SCOPED_TRACE(recompute);
    task_.config.training.recompute = recompute;
    const RanTraining tuned = run_training(task_);
    ASSERT_EQ(tuned.error, "");
    EXPECT_THAT(tuned.log, Contains(HasSubstr("start.safetensors: 10 tensors, 2 new")));
    for (const LayerPlan& layer : plan().layers) {
      if (layer.weights.count == 0) continue;
      SCOPED_TRACE(layer.name);
      EXPECT_EQ(same_block(layer.weights, tuned.last.weights, first_.weights), layer.frozen);
      EXPECT_EQ(same_block(layer.biases, tuned.last.weights, first_.weights), layer.frozen);
    }
    EXPECT_EQ(tuned.last.statistics, first_.statistics);
  }
}

TEST_F(FineTuningTest, StartsWhereTheFileEnded) {
  const std::string file = trained_file();
  task_.config.training.learning_rate = 1e-12;
  const RanTraining cold = run_training(task_);
  task_.config.model.from = {.file = file, .fresh = {}};
  const RanTraining warm = run_training(task_);
  ASSERT_EQ(warm.error, "");
  const auto loss = [](const RanTraining& ran) {
    return std::ranges::find(ran.reports.front().metrics, "validation_loss",
                             &std::pair<std::string, double>::first)
        ->second;
  };
  EXPECT_LT(loss(warm), 0.9 * loss(cold));
}

TEST_F(FineTuningTest, ResumesAsIfNothingHadHappened) {
  task_.config.model.from = {.file = trained_file(), .fresh = {}};
  task_.config.model.freeze = 2;
  task_.config.training.layer_decay = 0.5;
  const RanTraining undisturbed = run_training(task_);
  ASSERT_EQ(undisturbed.error, "");
  task_.checkpoints = directory_.file("checkpoints");
  task_.between_checkpoints = {};
  ASSERT_EQ(run_training(task_, {.stop_after = 9}).error, "");
  const RanTraining resumed = run_training(task_);
  ASSERT_EQ(resumed.error, "");
  EXPECT_THAT(resumed.log, Contains(HasSubstr("resumes from")));
  EXPECT_EQ(resumed.last.weights, undisturbed.last.weights);
}

TEST_F(FineTuningTest, AFileThatChangesBetweenStartAndResumeIsRefused) {
  const std::string file = trained_file();
  task_.config.model.from = {.file = file, .fresh = {}};
  task_.checkpoints = directory_.file("checkpoints");
  ASSERT_EQ(run_training(task_, {.stop_after = 9}).error, "");
  // The same content at another path is the same start.
  const std::string moved = directory_.file("moved.safetensors");
  ASSERT_TRUE(write_file(moved, *read_file(file)).ok());
  task_.config.model.from->file = moved;
  EXPECT_EQ(run_training(task_, {.stop_after = 1}).error, "");
  trained_file(/*seed=*/10);
  task_.config.model.from->file = file;
  EXPECT_THAT(run_training(task_).error, HasSubstr("model.from.file is \"content "));
  task_.config.model.from->file = directory_.file("gone");
  EXPECT_THAT(run_training(task_).error, HasSubstr("model.from.file: "));
}

TEST_F(FineTuningTest, SeveralWorkersTrainWhatOneDoes) {
  task_.config.model.from = {.file = trained_file(), .fresh = {"head"}};
  task_.config.model.freeze = 2;
  task_.config.training.layer_decay = 0.7;
  for (const auto optimizer : {api::OptimizerKind::kAdamW, api::OptimizerKind::kLamb}) {
    task_.config.training.optimizer = optimizer;
    task_.config.training.shard_optimizer.reset();
    const std::vector<float> one = run_world(task_, 1).weights[0];
    for (const std::int64_t world_size : {2, 3}) {
      SCOPED_TRACE(testing::Message() << "W=" << world_size);
      const std::vector<float> several = run_world(task_, world_size).weights[0];
      for (std::size_t i = 0; i < one.size(); ++i) {
        ASSERT_NEAR(several[i], one[i], 1e-4) << i;
      }
      EXPECT_TRUE(same_block(plan().layers[0].weights, several, first_.weights));
      task_.config.training.shard_optimizer = true;
      EXPECT_EQ(run_world(task_, world_size).weights[0], several);
      task_.config.training.shard_optimizer.reset();
    }
  }
}

TEST_F(FineTuningTest, TheErrorOfTheFileEndsAllWorkers) {
  const std::string file = directory_.file("start.safetensors");
  ASSERT_TRUE(write_file(file, "no tensors").ok());
  task_.config.model.from = {.file = file, .fresh = {}};
  const RanTraining ran = run_training(task_, {.world_size = 2});
  EXPECT_EQ(ran.failed, 2);
  EXPECT_THAT(ran.error, HasSubstr(file));
}

TEST_F(FineTuningTest, SixteenBitsKeepFrozenLayersToo) {
  task_.config.model.from = {.file = trained_file(), .fresh = {}};
  task_.config.model.freeze = 4;
  task_.config.training.precision = api::Precision::kBf16;
  const RanTraining tuned = run_training(task_);
  ASSERT_EQ(tuned.error, "");
  EXPECT_TRUE(same_block(plan().layers[2].weights, tuned.last.weights, first_.weights));
  EXPECT_EQ(tuned.last.statistics, first_.statistics);
}

}  // namespace
}  // namespace fettle::trainer
