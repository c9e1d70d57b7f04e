// A sharded optimiser: who has which part of its state, and that this changes memory alone.
#include "trainer/optimizer_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "trainer/learner.h"
#include "trainer/model/layer_configs.h"
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

// Longer than what is gathered at once, and one shard is empty.
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

// A collective that has nothing but sums.
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
      auto learner = *Learner::create(config, small_plan(), 8, 0, collective);
      const Optimizer& optimizer = learner->optimizer();
      EXPECT_EQ(optimizer.state1.size(),
                sharded ? 1120 / 4 + 8 - 16 * (collective.rank() > 1) : 1120);
      EXPECT_EQ(optimizer.state2.size(), optimizer.state1.size());
      EXPECT_EQ(optimizer.state_mib(),
                static_cast<double>(2 * 4 * optimizer.state1.size()) / (1 << 20));
    });
  }
}

}  // namespace
}  // namespace fettle::trainer
