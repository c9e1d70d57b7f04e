// Trainings that start from a file's weights, with frozen layers and layerDecay, by one worker and
// by several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/files/export.h"
#include "trainer/files/saved_model.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"
#include "trainer/testing/weights.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::Contains;
using testing::HasSubstr;

struct Ended {
  std::vector<EpochReport> reports;
  std::vector<std::string> log;
  std::vector<float> weights;
  std::vector<float> statistics;
};

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

  Result<Ended> run_as(const TrainingTask& task, Collective& collective, int stop_after = -1) {
    DataCache off("");
    FETTLE_ASSIGN(const TrainingData data, load_training_data(task.config.data, off));
    Ended ended;
    TrainingHooks hooks;
    hooks.report = [&](const EpochReport& report) { ended.reports.push_back(report); };
    hooks.log = [&](const std::string& line) { ended.log.push_back(line); };
    hooks.should_stop = [&stop_after] { return stop_after >= 0 && --stop_after <= 0; };
    FETTLE_ASSIGN(const auto training, Training::create(task, data, collective, hooks));
    FETTLE_TRY(training->run());
    ended.weights = weights_of(training->learner(), collective);
    ended.statistics = training->learner().network().parameters().statistics.download();
    return ended;
  }

  Result<Ended> run(const TrainingTask& task, int stop_after = -1) {
    SingleProcess single;
    return run_as(task, single, stop_after);
  }

  // Rank 0's end; all workers have the same weights.
  Ended run_world(const TrainingTask& task, std::int64_t world_size) {
    std::vector<Ended> all(static_cast<std::size_t>(world_size));
    Threads::run(world_size, [&](Collective& collective) {
      auto ended = run_as(task, collective);
      ASSERT_TRUE(ended.ok()) << ended.error().message;
      all[static_cast<std::size_t>(collective.rank())] = std::move(ended).value();
    });
    for (const Ended& one : all) EXPECT_EQ(one.weights, all[0].weights);
    return all[0];
  }

  // Trains for two epochs, and exports the network; returns the file.
  std::string trained_file(std::uint64_t seed = 9) {
    TrainingTask task = task_;
    task.seed = seed;
    task.config.training.epochs = task.until_epoch = 2;
    task.checkpoints = directory_.file("first" + std::to_string(seed));
    EXPECT_TRUE(run(task).ok());
    Checkpoint newest = *CheckpointStore(task.checkpoints).newest()->checkpoint;
    first_weights_ = newest.weights;
    first_statistics_ = newest.statistics;
    const auto model = read_saved_model(std::move(newest), "checkpoint");
    EXPECT_TRUE(model.ok()) << model.error().message;
    const std::string path = directory_.file("start.safetensors");
    const auto files = export_files(*model, {}, "safetensors", path);
    EXPECT_TRUE(write_file(path, files->front().content).ok());
    return path;
  }

  NetworkPlan plan() const {
    return *plan_network(task_.config, {{8, 8, 1}, SyntheticImages::kClasses, false, ""});
  }

  TemporaryDirectory directory_;
  TrainingTask task_;
  std::vector<float> first_weights_, first_statistics_;  // in trained_file()
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
    const auto tuned = run(task_);
    ASSERT_TRUE(tuned.ok()) << tuned.error().message;
    EXPECT_THAT(tuned->log, Contains(HasSubstr("start.safetensors: 10 tensors, 2 new")));
    for (const LayerPlan& layer : plan().layers) {
      if (layer.weights.count == 0) continue;
      SCOPED_TRACE(layer.name);
      EXPECT_EQ(same_block(layer.weights, tuned->weights, first_weights_), layer.frozen);
      EXPECT_EQ(same_block(layer.biases, tuned->weights, first_weights_), layer.frozen);
    }
    EXPECT_EQ(tuned->statistics, first_statistics_);
  }
}

TEST_F(FineTuningTest, StartsWhereTheFileEnded) {
  const std::string file = trained_file();
  task_.config.training.learning_rate = 1e-12;
  const auto cold = run(task_);
  task_.config.model.from = {.file = file, .fresh = {}};
  const auto warm = run(task_);
  ASSERT_TRUE(warm.ok()) << warm.error().message;
  const auto loss = [](const Ended& ended) {
    return std::ranges::find(ended.reports.front().metrics, "validation_loss",
                             &std::pair<std::string, double>::first)
        ->second;
  };
  EXPECT_LT(loss(*warm), 0.9 * loss(*cold));
}

TEST_F(FineTuningTest, ResumesAsIfNothingHadHappened) {
  task_.config.model.from = {.file = trained_file(), .fresh = {}};
  task_.config.model.freeze = 2;
  task_.config.training.layer_decay = 0.5;
  const auto undisturbed = run(task_);
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.error().message;
  task_.checkpoints = directory_.file("checkpoints");
  task_.between_checkpoints = {};
  ASSERT_TRUE(run(task_, /*stop_after=*/9).ok());
  const auto resumed = run(task_);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message;
  EXPECT_THAT(resumed->log, Contains(HasSubstr("resumes from")));
  EXPECT_EQ(resumed->weights, undisturbed->weights);
}

TEST_F(FineTuningTest, AFileThatChangesBetweenStartAndResumeIsRefused) {
  const std::string file = trained_file();
  task_.config.model.from = {.file = file, .fresh = {}};
  task_.checkpoints = directory_.file("checkpoints");
  ASSERT_TRUE(run(task_, /*stop_after=*/9).ok());
  // The same content at another path is the same start.
  const std::string moved = directory_.file("moved.safetensors");
  ASSERT_TRUE(write_file(moved, *read_file(file)).ok());
  task_.config.model.from->file = moved;
  EXPECT_TRUE(run(task_, /*stop_after=*/1).ok());
  trained_file(/*seed=*/10);
  task_.config.model.from->file = file;
  EXPECT_THAT(run(task_).error().message, HasSubstr("model.from.file is \"content "));
  task_.config.model.from->file = directory_.file("gone");
  EXPECT_THAT(run(task_).error().message, HasSubstr("model.from.file: "));
}

TEST_F(FineTuningTest, SeveralWorkersTrainWhatOneDoes) {
  task_.config.model.from = {.file = trained_file(), .fresh = {"head"}};
  task_.config.model.freeze = 2;
  task_.config.training.layer_decay = 0.7;
  for (const auto optimizer : {api::OptimizerKind::kAdamW, api::OptimizerKind::kLamb}) {
    task_.config.training.optimizer = optimizer;
    task_.config.training.shard_optimizer.reset();
    const Ended one = run_world(task_, 1);
    for (const std::int64_t world_size : {2, 3}) {
      SCOPED_TRACE(testing::Message() << "W=" << world_size);
      const Ended several = run_world(task_, world_size);
      for (std::size_t i = 0; i < one.weights.size(); ++i) {
        ASSERT_NEAR(several.weights[i], one.weights[i], 1e-4) << i;
      }
      EXPECT_TRUE(same_block(plan().layers[0].weights, several.weights, first_weights_));
      task_.config.training.shard_optimizer = true;
      EXPECT_EQ(run_world(task_, world_size).weights, several.weights);
      task_.config.training.shard_optimizer.reset();
    }
  }
}

TEST_F(FineTuningTest, TheErrorOfTheFileEndsAllWorkers) {
  const std::string file = directory_.file("start.safetensors");
  ASSERT_TRUE(write_file(file, "no tensors").ok());
  task_.config.model.from = {.file = file, .fresh = {}};
  Threads::run(2, [&](Collective& collective) {
    const auto ended = run_as(task_, collective);
    ASSERT_FALSE(ended.ok());
    if (collective.rank() > 0) return;
    EXPECT_THAT(ended.error().message, HasSubstr(file));
  });
}

TEST_F(FineTuningTest, SixteenBitsKeepFrozenLayersToo) {
  task_.config.model.from = {.file = trained_file(), .fresh = {}};
  task_.config.model.freeze = 4;
  task_.config.training.precision = api::Precision::kBf16;
  const auto tuned = run(task_);
  ASSERT_TRUE(tuned.ok()) << tuned.error().message;
  EXPECT_TRUE(same_block(plan().layers[2].weights, tuned->weights, first_weights_));
  EXPECT_EQ(tuned->statistics, first_statistics_);
}

}  // namespace
}  // namespace fettle::trainer
