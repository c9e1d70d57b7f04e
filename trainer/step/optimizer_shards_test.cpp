// A sharded optimiser: the ranges of the shards, and that sharding changes memory alone.
#include "trainer/step/optimizer_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "trainer/model/layer_configs.h"
#include "trainer/step/learner.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"

namespace fettle::trainer {
namespace {

using api::OptimizerKind;
using testing::ElementsAre;

// Weights of 1024 and 64 floats, then biases of 16 and 4 (in 16).
NetworkPlan small_plan() {
  api::ModelConfig model;
  model.layers = {linear(16), linear(4)};
  return *plan_network(model, {8, 8, 1}, 4);
}

TEST(ShardBounds, AreEvenAndOnCacheLines) {
  EXPECT_THAT(shard_bounds(small_plan(), OptimizerKind::kAdam, 1), ElementsAre(0, 1120));
  EXPECT_THAT(shard_bounds(small_plan(), OptimizerKind::kAdam, 3), ElementsAre(0, 384, 752, 1120));
}

TEST(ShardBounds, LambHasWholeTensors) {
  EXPECT_THAT(shard_bounds(small_plan(), OptimizerKind::kLamb, 2), ElementsAre(0, 1024, 1120));
  EXPECT_THAT(shard_bounds(small_plan(), OptimizerKind::kLamb, 3),
              ElementsAre(0, 1024, 1024, 1120));
}

TEST(ShardBounds, MoreWorkersThanLinesLeaveSomeWithout) {
  const auto bounds = shard_bounds(small_plan(), OptimizerKind::kAdam, 100);
  EXPECT_TRUE(std::ranges::is_sorted(bounds));
  EXPECT_EQ(bounds.size(), 101U);
  EXPECT_EQ(bounds.back(), 1120);
}

// Longer than one gathered piece, and one shard is empty.
TEST(GatherShards, BringsAllToRankZero) {
  const std::vector<std::int64_t> bounds = {0, 700'000, 700'000, 1'000'000};
  std::vector<float> expected(1'000'000);
  std::iota(expected.begin(), expected.end(), 0.0F);
  Threads::run(3, [&](Collective& collective) {
    const auto rank = static_cast<std::size_t>(collective.rank());
    const std::vector<float> mine(expected.begin() + bounds[rank],
                                  expected.begin() + bounds[rank + 1]);
    const auto whole = gather_shards(collective, mine, bounds);
    ASSERT_TRUE(whole.ok());
    EXPECT_EQ(*whole, rank == 0 ? expected : std::vector<float>());
  });
}

// A collective that offers only sums.
class OnlySums final : public Collective {
 public:
  explicit OnlySums(Collective& other) : other_(other) {}
  std::int64_t world_size() const override { return other_.world_size(); }
  std::int64_t rank() const override { return other_.rank(); }
  Status sum(std::span<float> values) override { return other_.sum(values); }
  Status sum(std::span<double> values) override { return other_.sum(values); }
  Status broadcast(std::span<std::byte> bytes) override { return other_.broadcast(bytes); }

 private:
  Collective& other_;
};

TEST(AllGather, CanBeASum) {
  Threads::run(3, [&](Collective& threads) {
    OnlySums collective(threads);
    std::vector<float> values(6, NAN);
    const std::vector<std::int64_t> bounds = {0, 1, 3, 6};
    for (std::int64_t i = bounds[static_cast<std::size_t>(collective.rank())];
         i < bounds[static_cast<std::size_t>(collective.rank()) + 1]; ++i) {
      values[static_cast<std::size_t>(i)] = 0.1F * static_cast<float>(i);
    }
    ASSERT_TRUE(collective.all_gather(values, bounds).ok());
    EXPECT_THAT(values, ElementsAre(0, 0.1F, 0.2F, 0.1F * 3, 0.4F, 0.5F));
  });
}

TEST(ShardedOptimizer, AWorkerKeepsItsShareOfTheState) {
  api::TrainingConfig config;
  config.optimizer = OptimizerKind::kAdam;
  config.backend = api::BackendKind::kReference;
  for (const bool sharded : {false, true}) {
    config.shard_optimizer = sharded;
    Threads::run(4, [&](Collective& collective) {
      auto learner =
          *Learner::create(config, small_plan(), shape_of_step(config, 8, 4), 0, collective);
      const Optimizer& optimizer = learner->optimizer();
      EXPECT_EQ(optimizer.state1.size(),
                sharded ? 1120 / 4 + 8 - 16 * (collective.rank() > 1) : 1120);
      EXPECT_EQ(optimizer.state2.size(), optimizer.state1.size());
      EXPECT_EQ(optimizer.state_mib(),
                static_cast<double>(2 * 4 * optimizer.state1.size()) / (1 << 20));
    });
  }
}

struct Trained {
  std::vector<float> weights;          // all masters, at rank 0
  std::vector<std::uint16_t> rounded;  // on rank `world_size - 1`
  std::int64_t masters = 0;            // fp32 numbers that rank 0 keeps
};

// Three steps of AdamW in bf16.
Trained train_in_bf16(bool sharded, OptimizerKind optimizer) {
  constexpr std::int64_t kWorld = 4;
  const ImageSet images = SyntheticImages(60).set();
  api::TrainingConfig config;
  config.optimizer = optimizer;
  config.weight_decay = 0.01;
  config.precision = api::Precision::kBf16;
  config.backend = api::BackendKind::kReference;
  config.shard_optimizer = sharded;
  Trained trained;
  Threads::run(kWorld, [&](Collective& world) {
    auto learner =
        *Learner::create(config, small_plan(), shape_of_step(config, 5, kWorld), 0, world);
    const BatchWriter writer({0.3, 0.2}, {}, kernels::DataType::kBFloat16, 4);
    Batch batch = writer.make_batch(images, 5);
    for (std::int64_t step = 0; step < 3; ++step) {
      Indices samples(5);
      std::iota(samples.begin(), samples.end(), 20 * step + 5 * world.rank());
      writer.write(images, samples, 0, batch);
      learner->add(batch, 0, true);
      end_step(*learner, 0.05);
    }
    Parameters& parameters = learner->network().parameters();
    const auto weights = learner->whole_weights();
    ASSERT_TRUE(weights.ok());
    if (world.rank() == 0) {
      trained.weights = *weights;
      trained.masters = parameters.weights.size() + parameters.shard.size();
    }
    if (world.rank() == kWorld - 1) trained.rounded = parameters.rounded.download();
  });
  return trained;
}

// Keeps a quarter of the decayed masters, and all others; the bits are those of unsharded training.
TEST(ShardedOptimizer, AWorkerKeepsItsShareOfTheMasters) {
  for (const OptimizerKind optimizer : {OptimizerKind::kAdamW, OptimizerKind::kLamb}) {
    const Trained whole = train_in_bf16(false, optimizer);
    const Trained sharded = train_in_bf16(true, optimizer);
    EXPECT_EQ(whole.masters, 1120);
    const std::int64_t share = optimizer == OptimizerKind::kLamb ? 1024 : 1120 / 4 + 8;
    EXPECT_EQ(sharded.masters, share + 32);
    EXPECT_NE(whole.weights, initial_values(small_plan(), 0).weights) << "it has trained";
    EXPECT_EQ(sharded.weights, whole.weights);
    EXPECT_EQ(sharded.rounded, whole.rounded);
  }
}

}  // namespace
}  // namespace fettle::trainer
