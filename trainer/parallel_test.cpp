// The design's promises for several workers, for every world size and every limit on the samples
// that a worker holds: the global batch is exact, and the gradients are those of one worker that
// holds it all.
// Workers are threads that sum in the order of their ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "trainer/data/batching.h"
#include "trainer/data/split.h"
#include "trainer/model/layer_configs.h"
#include "trainer/step/learner.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"
#include "trainer/testing/weights.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;

constexpr std::int64_t kGroup = 16;

api::ModelConfig model_with_batch_norm() {
  api::ModelConfig model;
  model.layers = {conv(3), simple(LayerType::kBatchNorm), simple(LayerType::kRelu), dropout(0.25),
                  linear(4)};
  return model;
}

// Sums of the gradients and the statistics after one step with a learning rate of zero.
struct Step {
  std::vector<float> gradients;
  std::vector<float> statistics;
  Score score;
};

// The gradients of the mean loss: one step of SGD with a learning rate of 1 subtracts them.
Step step_of(Collective& collective, std::int64_t batch, std::int64_t limit) {
  const ImageSet images = SyntheticImages(batch).set();
  const NetworkPlan plan = *plan_network(model_with_batch_norm(), images.shape(), images.classes());
  api::TrainingConfig config;
  config.backend = api::BackendKind::kReference;
  auto learner = *Learner::create(
      config, plan, shape_of_step(config, limit, collective.world_size()), 4, collective);
  Parameters& parameters = learner->network().parameters();
  const std::vector<float> before = parameters.weights.download();
  const BatchWriter writer({0.3, 0.2}, {.flip = true, .shift = 1}, kernels::DataType::kFloat32, 4);
  const Indices order = epoch_order(keyed_permutation(batch, 1), 4, 0);

  Batch held = writer.make_batch(images, limit);
  const Dealing dealing{collective.world_size(), collective.rank(), limit, kGroup};
  for (const Range& piece : deal({0, batch}, dealing)) {
    EXPECT_LE(piece.size(), limit);
    writer.write(images, {order.data() + piece.begin, static_cast<std::size_t>(piece.size())}, 0,
                 held);
    learner->add(held, 0);
  }
  Step step;
  step.score = end_step(*learner, 1).score;
  const std::vector<float> after = parameters.weights.download();
  for (std::size_t i = 0; i < before.size(); ++i) {
    step.gradients.push_back(before[i] - after[i]);
  }
  step.statistics = parameters.statistics.download();
  return step;
}

Step step_of_world(std::int64_t world_size, std::int64_t batch, std::int64_t limit) {
  std::vector<Step> steps(static_cast<std::size_t>(world_size));
  Threads::run(world_size, [&](Collective& collective) {
    steps[static_cast<std::size_t>(collective.rank())] = step_of(collective, batch, limit);
  });
  for (const Step& step : steps) {
    EXPECT_EQ(step.gradients, steps[0].gradients) << "all workers have the same weights";
    EXPECT_EQ(step.statistics, steps[0].statistics);
  }
  return steps[0];
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-6);
}

class GlobalBatch : public testing::TestWithParam<std::int64_t> {};

TEST_P(GlobalBatch, IsExactAndItsGradientsAreThoseOfOneWorker) {
  const std::int64_t batch = GetParam();
  const Step one = step_of_world(1, batch, 64);
  EXPECT_GT(*std::ranges::max_element(one.gradients), 1e-3F) << "there is something to compare";
  for (const std::int64_t limit : {16, 64}) {
    for (std::int64_t world_size = 1; world_size <= 16; ++world_size) {
      SCOPED_TRACE(testing::Message() << "W=" << world_size << " m=" << limit);
      const Step several = step_of_world(world_size, batch, limit);
      EXPECT_EQ(several.score.samples, batch);
      EXPECT_EQ(several.score.correct, one.score.correct);
      EXPECT_NEAR(several.score.mean_loss(), one.score.mean_loss(), 1e-6);
      expect_near(several.gradients, one.gradients);
      expect_near(several.statistics, one.statistics);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(B, GlobalBatch, testing::Values(128, 250, 256, 512));

// ---- Whole trainings ---------------------------------------------------------------------------

TrainingTask task_of(const TemporaryDirectory& directory) {
  TrainingTask task;
  task.config.data = write_synthetic(directory, 400);
  task.config.data.augment.shift = 1;
  task.config.model = model_with_batch_norm();
  task.config.training.backend = api::BackendKind::kReference;
  task.config.training.optimizer = api::OptimizerKind::kAdam;
  task.config.training.global_batch = 50;
  task.config.training.norm_group = 10;
  task.config.training.epochs = 3;
  task.seed = 5;
  task.until_epoch = 3;
  return task;
}

struct Ended {
  std::vector<EpochReport> reports;  // of rank 0
  std::vector<std::vector<float>> weights;
  std::vector<Ending> endings;
};

// `should_stop`: called by each rank.
Ended train(const TrainingTask& task, std::int64_t world_size,
            const std::function<bool(std::int64_t rank)>& should_stop = {}) {
  DataCache off("");
  const TrainingData data = *load_training_data(task.config.data, off);
  Ended ended;
  ended.weights.resize(static_cast<std::size_t>(world_size));
  ended.endings.resize(static_cast<std::size_t>(world_size));
  Threads::run(world_size, [&](Collective& collective) {
    const std::int64_t rank = collective.rank();
    TrainingHooks hooks;
    hooks.report = [&](const EpochReport& report) {
      EXPECT_EQ(rank, 0);
      ended.reports.push_back(report);
    };
    hooks.log = [](const std::string&) {};
    hooks.should_stop = [&should_stop, rank] { return should_stop && should_stop(rank); };
    const auto training = Training::create(task, data, collective, hooks);
    ASSERT_TRUE(training.ok()) << training.error().message;
    const auto ending = (*training)->run();
    ASSERT_TRUE(ending.ok()) << ending.error().message;
    const auto index = static_cast<std::size_t>(rank);
    ended.endings[index] = *ending;
    ended.weights[index] = weights_of((*training)->learner(), collective);
  });
  for (const auto& weights : ended.weights) EXPECT_EQ(weights, ended.weights[0]);
  for (const Ending ending : ended.endings) EXPECT_EQ(ending, ended.endings[0]);
  return ended;
}

double metric(const EpochReport& report, const std::string& name) {
  for (const auto& [key, value] : report.metrics) {
    if (key == name) return value;
  }
  return std::nan("");
}

TEST(Workers, ReportTheCurveOfOne) {
  const TemporaryDirectory directory;
  const TrainingTask task = task_of(directory);
  const Ended one = train(task, 1);
  for (const std::int64_t world_size : {2, 3, 7}) {
    SCOPED_TRACE(testing::Message() << "W=" << world_size);
    const Ended several = train(task, world_size);
    ASSERT_EQ(several.reports.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      for (const char* name : {"loss", "validation_loss", "learning_rate"}) {
        EXPECT_NEAR(metric(several.reports[i], name), metric(one.reports[i], name), 2e-5) << name;
      }
    }
    EXPECT_EQ(metric(several.reports[2], "world_size"), world_size);
  }
}

// With batchPerWorker the batch grows with the world, and the learning rate with the batch.
TEST(Workers, TheLearningRateFollowsTheGlobalBatch) {
  const TemporaryDirectory directory;
  TrainingTask task = task_of(directory);
  task.config.training.optimizer = api::OptimizerKind::kSgd;
  task.config.training.global_batch.reset();
  task.config.training.batch_per_worker = 20;
  const Ended three = train(task, 3);
  EXPECT_EQ(metric(three.reports[0], "global_batch"), 60);
  EXPECT_NEAR(metric(three.reports[0], "learning_rate"), 3 * task.config.training.learning_rate,
              1e-12);
}

TEST(Workers, OneThatIsToStopStopsAllAfterTheSameStep) {
  const TemporaryDirectory directory;
  TrainingTask task = task_of(directory);
  task.checkpoints = directory.file("checkpoints");
  int steps = 0;
  const Ended stopped =
      train(task, 3, [&](std::int64_t rank) { return rank == 2 && ++steps >= 8; });
  EXPECT_THAT(stopped.endings, testing::Each(Ending::kStopped));
  const Ended resumed = train(task, 2);
  const Ended whole = train(task_of(directory), 1);
  EXPECT_NEAR(metric(resumed.reports.back(), "validation_loss"),
              metric(whole.reports.back(), "validation_loss"), 2e-5);
}

TEST(Workers, Fp16SkipsTheSameStepsOnAll) {
  const TemporaryDirectory directory;
  TrainingTask task = task_of(directory);
  task.config.training.precision = api::Precision::kFp16;
  const Ended one = train(task, 1);
  const Ended three = train(task, 3);
  EXPECT_EQ(metric(three.reports.back(), "loss_scale"), metric(one.reports.back(), "loss_scale"));
  EXPECT_EQ(metric(three.reports.back(), "skipped_steps"),
            metric(one.reports.back(), "skipped_steps"));
  EXPECT_NEAR(metric(three.reports.back(), "loss"), metric(one.reports.back(), "loss"), 2e-2);
}

// ---- A sharded optimiser -----------------------------------------------------------------------

class Sharded : public testing::TestWithParam<std::tuple<api::OptimizerKind, api::Precision>> {};

TEST_P(Sharded, TrainsToTheSameBits) {
  const TemporaryDirectory directory;
  TrainingTask task = task_of(directory);
  std::tie(task.config.training.optimizer, task.config.training.precision) = GetParam();
  task.config.training.momentum = 0.9;
  task.config.training.weight_decay = 0.01;
  task.config.training.clip_norm = 0.5;
  task.until_epoch = 2;
  for (const std::int64_t world_size : {1, 2, 3, 7}) {
    SCOPED_TRACE(testing::Message() << "W=" << world_size);
    task.config.training.shard_optimizer.reset();
    const Ended whole = train(task, world_size);
    task.config.training.shard_optimizer = true;
    const Ended sharded = train(task, world_size);
    EXPECT_EQ(sharded.weights, whole.weights);
    EXPECT_EQ(metric(sharded.reports.back(), "validation_loss"),
              metric(whole.reports.back(), "validation_loss"));
    EXPECT_LE(metric(sharded.reports.back(), "optimizer_mib"),
              metric(whole.reports.back(), "optimizer_mib"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, Sharded,
    testing::Values(std::tuple(api::OptimizerKind::kSgd, api::Precision::kFp32),
                    std::tuple(api::OptimizerKind::kAdam, api::Precision::kBf16),
                    std::tuple(api::OptimizerKind::kAdamW, api::Precision::kFp16),
                    std::tuple(api::OptimizerKind::kRmsprop, api::Precision::kFp32),
                    std::tuple(api::OptimizerKind::kLamb, api::Precision::kBf16)));

// Stopped by a worker in the middle of an epoch.
Checkpoint checkpoint_of(TrainingTask task, const std::string& directory, bool sharded) {
  task.checkpoints = directory;
  task.config.training.shard_optimizer = sharded;
  int steps = 0;
  train(task, 3, [&](std::int64_t rank) { return rank == 2 && ++steps >= 8; });
  return *CheckpointStore(directory).newest()->checkpoint;
}

TEST(ShardedOptimizer, WritesTheCheckpointThatAWholeOneWrites) {
  const TemporaryDirectory directory;
  const TrainingTask task = task_of(directory);
  Checkpoint whole = checkpoint_of(task, directory.file("whole"), false);
  Checkpoint sharded = checkpoint_of(task, directory.file("sharded"), true);
  EXPECT_GT(whole.position.offset, 0);
  EXPECT_GT(*std::ranges::max_element(whole.state2), 0);
  EXPECT_EQ(sharded, whole);
}

TEST(ShardedOptimizer, ResumesFromAnyCheckpointAsIfNothingHadHappened) {
  const TemporaryDirectory directory;
  TrainingTask task = task_of(directory);
  const Ended undisturbed = train(task, 3);
  for (const bool before : {false, true}) {
    for (const bool after : {false, true}) {
      for (const std::int64_t world_size : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << before << after << " W=" << world_size);
        const std::string name =
            directory.file(std::to_string(4 * world_size + 2 * before + after));
        checkpoint_of(task, name, before);
        TrainingTask resumed = task;
        resumed.checkpoints = name;
        resumed.config.training.shard_optimizer = after;
        const Ended ended = train(resumed, world_size);
        EXPECT_NEAR(metric(ended.reports.back(), "validation_loss"),
                    metric(undisturbed.reports.back(), "validation_loss"), 2e-5);
        EXPECT_EQ(ended.weights == undisturbed.weights, world_size == 3) << "bit for bit";
      }
    }
  }
}

TEST(ShardedOptimizer, TakesUpItsShareOfAParents) {
  const TemporaryDirectory directory;
  TrainingTask task = task_of(directory);
  task.checkpoints = directory.file("parent");
  task.until_epoch = 1;
  train(task, 1);
  task.checkpoints.clear();
  task.parent = {directory.file("parent"), 1};
  task.until_epoch = 3;
  for (const auto optimizer : {api::OptimizerKind::kAdam, api::OptimizerKind::kSgd}) {
    task.config.training.optimizer = optimizer;  // for sgd the state is another's, and ignored
    task.config.training.shard_optimizer = false;
    const Ended whole = train(task, 3);
    task.config.training.shard_optimizer = true;
    EXPECT_EQ(train(task, 3).weights, whole.weights);
  }
}

}  // namespace
}  // namespace fettle::trainer
