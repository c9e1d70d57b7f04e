// Trainings whose weights are pruned (training.prune), and the masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "trainer/model/layer_configs.h"
#include "trainer/prune/pruning.h"
#include "trainer/testing/run_training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::HasSubstr;

NetworkPlan plan_of(const std::vector<api::LayerConfig>& layers,
                    const kernels::ImageShape& input = {8, 8, 1}, std::int64_t classes = 4) {
  api::ModelConfig model;
  model.layers = layers;
  const auto plan = plan_network(model, input, classes);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

bool keeps(const PruneMask& mask, std::int64_t weight) {
  return (mask[static_cast<std::size_t>(weight / 16)] >> (weight % 16) & 1) != 0;
}

std::int64_t zeros(const std::vector<float>& weights, const Block& block) {
  const auto first = weights.begin() + block.offset;
  return std::count(first, first + block.count, 0.0F);
}

// ---- Masks -------------------------------------------------------------------------------------

TEST(PruningSchedule, GrowsWithTheCubeAndEndsInTime) {
  const NetworkPlan plan = plan_of({linear(8), linear(4)});
  const Pruning pruning =
      *Pruning::create({.sparsity = 0.8, .begin = 0.25, .end = 0.75}, plan, 400);
  EXPECT_FALSE(pruning.renews_before(99));
  EXPECT_TRUE(pruning.renews_before(100));
  EXPECT_TRUE(pruning.renews_before(300));
  EXPECT_FALSE(pruning.renews_before(301));
  EXPECT_EQ(pruning.share_at(100), 0);
  EXPECT_DOUBLE_EQ(pruning.share_at(200), 0.8 * (1 - 0.125));
  EXPECT_EQ(pruning.share_at(300), 0.8);
  int renewals = 0;
  for (std::int64_t step = 0; step < 400; ++step) renewals += pruning.renews_before(step) ? 1 : 0;
  EXPECT_EQ(renewals, 18) << "every twelfth step, and at the end";
}

TEST(PruningSchedule, RenewsEveryHundredStepsOfALongTraining) {
  const NetworkPlan plan = plan_of({linear(4)});
  const Pruning pruning = *Pruning::create({.sparsity = 0.5, .begin = 0, .end = 0.5}, plan, 10'000);
  EXPECT_TRUE(pruning.renews_before(100));
  EXPECT_FALSE(pruning.renews_before(150));
}

TEST(PruningSchedule, TheLastStepHasTheFinalShareAtTheLatest) {
  const NetworkPlan plan = plan_of({linear(4)});
  for (const std::int64_t steps : {1, 2, 7}) {
    const Pruning pruning = *Pruning::create({.sparsity = 0.5, .begin = 1, .end = 1}, plan, steps);
    EXPECT_TRUE(pruning.renews_before(steps - 1));
    EXPECT_EQ(pruning.share_at(steps - 1), 0.5);
  }
}

TEST(PruningMask, DropsTheSmallestOfEachLayerAndNothingElse) {
  const NetworkPlan plan = plan_of({conv(3), simple(LayerType::kBatchNorm), linear(8), linear(4)});
  std::vector<float> weights = initial_values(plan, 3).weights;
  const Pruning pruning = *Pruning::create({.sparsity = 0.7, .begin = 0, .end = 0}, plan, 1);
  const PruneMask mask = pruning.mask_at(0, weights);
  std::int64_t prunable = 0;
  std::int64_t dropped = 0;
  for (const LayerPlan& layer : plan.layers) {
    if (layer.type == LayerType::kBatchNorm) continue;
    float largest_dropped = 0;
    float smallest_kept = 1e9F;
    std::int64_t of_layer = 0;
    for (std::int64_t i = 0; i < layer.weights.count; ++i) {
      const std::int64_t at = layer.weights.offset + i;
      const float magnitude = std::fabs(weights[static_cast<std::size_t>(at)]);
      float& bound = keeps(mask, at) ? smallest_kept : largest_dropped;
      bound = keeps(mask, at) ? std::min(bound, magnitude) : std::max(bound, magnitude);
      of_layer += keeps(mask, at) ? 0 : 1;
    }
    EXPECT_LE(largest_dropped, smallest_kept) << layer.name;
    EXPECT_EQ(of_layer, std::llrint(0.7 * static_cast<double>(layer.weights.count))) << layer.name;
    prunable += layer.weights.count;
    dropped += of_layer;
  }
  EXPECT_EQ(pruning.prunable(), prunable);
  EXPECT_EQ(pruning.dropped_by(mask), dropped) << "nothing between the layers, and nothing else";
}

TEST(PruningMask, IsToldByZeros) {
  const NetworkPlan plan = plan_of({linear(8), linear(4)});
  std::vector<float> weights = initial_values(plan, 3).weights;
  const Pruning pruning = *Pruning::create({.sparsity = 0.7, .begin = 0, .end = 0}, plan, 1);
  const PruneMask mask = pruning.mask_at(0, weights);
  for (std::int64_t i = 0; i < plan.decayed; ++i) {
    if (!keeps(mask, i)) weights[static_cast<std::size_t>(i)] = 0;
  }
  EXPECT_EQ(pruning.mask_of_zeros(weights), mask);
  EXPECT_EQ(pruning.mask_at(0, weights), mask);
}

// In the order of PyTorch's columns: behind an image the channels come first there.
TEST(PruningMask, LeavesTwoOfFourAlongTheInputs) {
  const NetworkPlan plan = plan_of({conv(2), linear(8), linear(4)});
  const std::vector<float> weights = initial_values(plan, 3).weights;
  const Pruning pruning = *Pruning::create(
      {.pattern = api::PrunePattern::kTwoOfFour, .sparsity = {}, .begin = 0, .end = 0}, plan, 1);
  const PruneMask mask = pruning.mask_at(0, weights);
  EXPECT_EQ(pruning.prunable(), plan.layers[1].weights.count + plan.layers[2].weights.count)
      << "a convolution of one colour is spared";
  EXPECT_EQ(pruning.dropped_by(mask), pruning.prunable() / 2);
  const auto expect_two = [&](std::vector<std::int64_t> group) {
    std::ranges::sort(group, {}, [&](std::int64_t at) {
      return std::fabs(weights[static_cast<std::size_t>(at)]);
    });
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(keeps(mask, group[i]), i >= 2) << group[0];
  };
  const Block& behind_image = plan.layers[1].weights;  // rows of 64 pixels of 2 channels
  for (std::int64_t row = 0; row < 8; ++row) {
    for (std::int64_t column = 0; column < 128; column += 4) {
      const std::int64_t channel = column / 64;
      const std::int64_t first = behind_image.offset + row * 128 + column % 64 * 2 + channel;
      expect_two({first, first + 2, first + 4, first + 6});
    }
  }
  const Block& last = plan.layers[2].weights;
  for (std::int64_t i = 0; i < last.count; i += 4) {
    const std::int64_t first = last.offset + i;
    expect_two({first, first + 1, first + 2, first + 3});
  }
}

TEST(PruningMask, RefusesTwoOfFourOnAnOddWidth) {
  const auto refusal = [](const NetworkPlan& plan) {
    const auto made =
        Pruning::create({.pattern = api::PrunePattern::kTwoOfFour, .sparsity = {}}, plan, 1);
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_EQ(refusal(plan_of({linear(9), linear(4)})),
            "training.prune.pattern 2:4 does not fit model.layers[1] (linear), which has 9 inputs; "
            "expected a multiple of 4, or pattern unstructured");
  EXPECT_THAT(refusal(plan_of({conv(6), conv(4), linear(4)})),
              HasSubstr("model.layers[1] (conv), which has 6 input channels"));
  EXPECT_EQ(refusal(plan_of({conv(4), conv(4), linear(4)})), "");
}

// ---- Trainings ---------------------------------------------------------------------------------

class PruneTest : public testing::Test {
 protected:
  PruneTest() {
    task_.config.data = write_synthetic(directory_, 240);
    task_.config.model.layers = {conv(4), simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
                                 linear(16), linear(4)};
    api::TrainingConfig& training = task_.config.training;
    training.backend = api::BackendKind::kReference;
    training.optimizer = api::OptimizerKind::kAdamW;
    training.weight_decay = 0.1;
    training.global_batch = 24;
    training.norm_group = 6;
    training.epochs = task_.until_epoch = 4;
    training.prune = api::PruneConfig{.sparsity = 0.9};
    task_.seed = 5;
    task_.between_checkpoints = {};
  }

  TrainingTask apart(const std::string& name) const {
    TrainingTask task = task_;
    task.checkpoints = directory_.file(name);
    return task;
  }

  NetworkPlan plan() const { return plan_of(task_.config.model.layers); }

  TemporaryDirectory directory_;
  TrainingTask task_;
};

TEST_F(PruneTest, LeavesExactlyTheWantedWeights) {
  const RanTraining ran = run_training(task_);
  ASSERT_EQ(ran.error, "");
  std::int64_t all = 0;
  std::int64_t pruned = 0;
  const NetworkPlan network = plan();
  for (const LayerPlan& layer : network.layers) {
    if (layer.type != LayerType::kLinear && layer.type != LayerType::kConv) continue;
    const std::int64_t found = zeros(ran.weights[0], layer.weights);
    EXPECT_EQ(found, std::llrint(0.9 * static_cast<double>(layer.weights.count))) << layer.name;
    all += layer.weights.count;
    pruned += found;
  }
  EXPECT_EQ(ran.metric("sparsity"), static_cast<double>(pruned) / static_cast<double>(all));
  EXPECT_EQ(ran.metric("nonzero_parameters"), static_cast<double>(network.trained() - pruned));
  EXPECT_GT(ran.metric("validation_accuracy"), 0.5) << "and learns";
}

TEST_F(PruneTest, PrunesNothingBeforeItsBeginning) {
  task_.config.training.prune->begin = 0.5;
  task_.until_epoch = 2;
  const RanTraining ran = run_training(task_);
  EXPECT_EQ(ran.metric("sparsity"), 0);
  TrainingTask plain = task_;
  plain.config.training.prune.reset();
  EXPECT_EQ(ran.weights, run_training(plain).weights);
}

TEST_F(PruneTest, TheBitsAreTheSameHoweverOftenItIsInterrupted) {
  for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
    task_.config.training.precision = precision;
    const std::string name = precision == api::Precision::kFp32 ? "fp32" : "bf16";
    const RanTraining whole = run_training(apart(name));
    const TrainingTask stopped = apart(name + " stopped");
    for (const int steps : {1, 6, 3, 9, 5, 2}) {
      EXPECT_EQ(run_training(stopped, {.stop_after = steps}).ending, Ending::kStopped);
    }
    const RanTraining last = run_training(stopped);
    EXPECT_EQ(last.weights, whole.weights);
    EXPECT_EQ(last.metric("sparsity"), whole.metric("sparsity"));
    EXPECT_EQ(last.metric("loss"), whole.metric("loss"));
  }
}

TEST_F(PruneTest, WorkersHaveTheSameMasks) {
  for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
    task_.config.training.precision = precision;
    const RanTraining one = run_training(task_);
    const RanTraining two = run_training(task_, {.world_size = 2});
    EXPECT_EQ(two.weights[0], two.weights[1]);
    EXPECT_EQ(two.metric("sparsity"), one.metric("sparsity"));
    TrainingTask sharded = task_;
    sharded.config.training.shard_optimizer = true;
    const RanTraining shards = run_training(sharded, {.world_size = 2});
    EXPECT_EQ(shards.last.weights, two.last.weights) << "sharding changes no bit";
  }
}

TEST_F(PruneTest, PrunesTheSameOnAGpu) {
  const RanTraining on_cpu = run_training(task_);
  const RanTraining on_gpu =
      run_training(task_, {.backend = [] { return *kernels::cuda_backend(); }});
  ASSERT_EQ(on_gpu.error, "");
  EXPECT_EQ(on_gpu.metric("sparsity"), on_cpu.metric("sparsity"));
  EXPECT_NEAR(on_gpu.metric("loss"), on_cpu.metric("loss"), 1e-3);
}

TEST_F(PruneTest, TwoOfFourIsHalf) {
  task_.config.training.prune = api::PruneConfig{
      .pattern = api::PrunePattern::kTwoOfFour, .sparsity = {}, .begin = 0.1, .end = 0.5};
  EXPECT_EQ(run_training(task_).metric("sparsity"), 0.5);
  task_.config.model.layers[3] = linear(15);
  EXPECT_THAT(run_training(task_).error, HasSubstr("model.layers[4] (linear)"));
}

}  // namespace
}  // namespace fettle::trainer
