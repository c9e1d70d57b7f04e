// The messages of a network's gradients leave during the backward pass, and the sums are those of
// one worker, whichever worker has samples and whatever is lost.
#include "trainer/step/gradient_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "trainer/model/layer_configs.h"
#include "trainer/step/learner.h"
#include "trainer/testing/elements.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::ElementsAre;

NetworkPlan plan_of(std::vector<api::LayerConfig> layers, std::int64_t side = 8) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  return *plan_network(model, {side, side, 1}, model.layers.back().units.value_or(4));
}

// ---- The plan ----------------------------------------------------------------------------------

TEST(GradientMessages, LeaveFromTheLastLayerOnInPiecesOfAtLeastSoMuch) {
  // Weights: 64 x 32, 32 x 16, 16 x 32, 32 x 16.
  const NetworkPlan plan = plan_of({linear(32), linear(16), linear(32), linear(16)});
  const GradientMessages messages = plan_messages(plan, plan.parameters + 6, 1000);
  EXPECT_THAT(messages.early,
              ElementsAre(EarlyMessage{{2560, 3584}, 2},  // two layers, to be large enough
                          EarlyMessage{{0, 2560}, 0}));
  EXPECT_EQ(messages.rest, (Range{3584, plan.parameters + 6})) << "biases and what a step sums";
}

TEST(GradientMessages, TheFirstLayersMakeASmallOneOfTheirOwn) {
  const NetworkPlan plan = plan_of({linear(8), linear(300), linear(4)});
  EXPECT_THAT(plan_messages(plan, plan.parameters, 1000).early,
              ElementsAre(EarlyMessage{{2912, 4112}, 2}, EarlyMessage{{512, 2912}, 1},
                          EarlyMessage{{0, 512}, 0}));
}

TEST(GradientMessages, WhatIsCompleteOnlyWithTheLastGradientGoesWithTheRest) {
  const NetworkPlan small = plan_of({linear(32), linear(16)});
  const NetworkPlan one_layer = plan_of({linear(1000)});
  for (const NetworkPlan& plan : {small, one_layer}) {
    const GradientMessages messages = plan_messages(plan, plan.parameters + 6, 10'000);
    EXPECT_TRUE(messages.early.empty());
    EXPECT_EQ(messages.rest, (Range{0, plan.parameters + 6}));
  }
}

TEST(GradientMessages, LeaveOutWhatIsFrozen) {
  api::ModelConfig model;
  model.layers = {linear(32), linear(16), linear(32), linear(16)};
  model.freeze = 1;
  const NetworkPlan plan = *plan_network(model, {8, 8, 1}, 16);
  EXPECT_THAT(plan_messages(plan, plan.parameters, 500).early,
              ElementsAre(EarlyMessage{{3072, 3584}, 3}, EarlyMessage{{2560, 3072}, 2},
                          EarlyMessage{{2048, 2560}, 1}));
  EXPECT_EQ(plan_messages(plan, plan.parameters, 5000).rest, (Range{2048, plan.parameters}));
}

TEST(GradientMessages, ATiedMatrixIsCompleteWithTheEmbedding) {
  api::ModelConfig model;
  api::LayerConfig embedding = simple(LayerType::kEmbedding);
  embedding.units = 16;
  model.layers = {embedding, linear(16), simple(LayerType::kHead)};
  const NetworkPlan plan =
      *plan_network(model, SampleFormat{{8, 1, 1}, 100, true, "100 token ids"});
  const GradientMessages messages = plan_messages(plan, plan.parameters, 100);
  EXPECT_THAT(messages.early,
              ElementsAre(EarlyMessage{{1600 + 128, 1984}, 1}, EarlyMessage{{0, 1600 + 128}, 0}));
}

// ---- When they leave ---------------------------------------------------------------------------

// Doubles the values, as if another worker had the same; fails from message `fails_at` on.
class Doubling final : public Collective {
 public:
  explicit Doubling(int fails_at = 1000) : fails_at_(fails_at) {}
  std::int64_t world_size() const override { return 2; }
  std::int64_t rank() const override { return 0; }
  Status sum(std::span<float> values) override {
    sizes.push_back(values.size());
    if (++messages >= fails_at_) return Error{ErrorCode::kUnavailable, "rank 1 is gone"};
    for (float& value : values) value *= 2;
    return success();
  }
  Status sum(std::span<double>) override { return success(); }
  Status broadcast(std::span<std::byte>) override { return success(); }
  std::vector<std::size_t> sizes;
  std::atomic<int> messages = 0;

 private:
  const int fails_at_;
};

void await_messages(const Doubling& collective, int expected) {
  for (int i = 0; i < 24'000 && collective.messages < expected; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_EQ(collective.messages, expected);
}

const GradientMessages kThree{{{{6, 10}, 4}, {{3, 6}, 2}, {{0, 3}, 0}}, {10, 12}};

TEST(GradientSum, AMessageLeavesOnceItsLayersAreDone) {
  Doubling collective;
  std::vector<float> gradients(12, 1.0F);
  GradientSum sum(collective, kThree);
  for (int step = 0; step < 2; ++step) {
    std::ranges::fill(gradients, 1.0F);
    sum.layer_done(5, gradients);  // completes no message
    sum.layer_done(4, gradients);
    await_messages(collective, 4 * step + 1);  // the backward pass is still under way
    sum.layer_done(3, gradients);
    sum.layer_done(2, gradients);
    await_messages(collective, 4 * step + 2);
    sum.layer_done(0, gradients);
    ASSERT_TRUE(sum.finish(gradients).ok());
    EXPECT_THAT(gradients, testing::Each(2.0F)) << "each once";
  }
  EXPECT_THAT(collective.sizes, ElementsAre(4, 3, 3, 2, 4, 3, 3, 2));
}

TEST(GradientSum, AWorkerWithoutSamplesSendsTheSameMessagesAtTheEnd) {
  Doubling collective;
  std::vector<float> gradients(12, 1.0F);
  GradientSum sum(collective, kThree);
  ASSERT_TRUE(sum.finish(gradients).ok());
  EXPECT_THAT(gradients, testing::Each(2.0F));
  EXPECT_THAT(collective.sizes, ElementsAre(4, 3, 3, 2));
}

TEST(GradientSum, AfterALossNothingMoreIsSentAndTheEndSaysWhy) {
  for (int fails_at = 1; fails_at <= 4; ++fails_at) {
    Doubling collective(fails_at);
    std::vector<float> gradients(12, 1.0F);
    GradientSum sum(collective, kThree);
    for (std::int64_t layer = 4; layer >= 0; --layer) sum.layer_done(layer, gradients);
    const Status ended = sum.finish(gradients);
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().message, "rank 1 is gone");
    EXPECT_EQ(collective.messages, fails_at);
  }
}

TEST(GradientSum, CanBeGivenUpInTheMiddleOfAStep) {
  Doubling collective;
  std::vector<float> gradients(12, 1.0F);
  GradientSum sum(collective, kThree);
  sum.layer_done(2, gradients);
}

// ---- The sums ----------------------------------------------------------------------------------

// Two layers with more than one message's gradients each: 64 x 9000 and 9000 x 40.
constexpr std::int64_t kSamples = 24;
NetworkPlan large_plan(const ImageSet& images) {
  api::ModelConfig model;
  model.layers = {linear(9000), simple(LayerType::kRelu), linear(40), linear(4)};
  return *plan_network(model, images.shape(), images.classes());
}

struct Summed {
  std::vector<float> gradients;  // of the mean loss
  Score score;
};

// One step of SGD with a learning rate of 1, from micro-batches of at most 5 samples.
Summed step_of(Collective& collective, std::int64_t samples) {
  const ImageSet images = SyntheticImages(kSamples).set();
  api::TrainingConfig config;
  auto learner = *Learner::create(config, large_plan(images),
                                  shape_of_step(config, 5, collective.world_size()), 4, collective);
  Parameters& parameters = learner->network().parameters();
  const std::vector<float> before = parameters.weights.download();
  const BatchWriter writer({0.3, 0.2}, {}, kernels::DataType::kFloat32, 4);
  Batch held = writer.make_batch(images, 5);
  const Range share = share_of({0, samples}, collective.world_size(), collective.rank());
  for (const Range& piece : micro_batches(share, 5)) {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = piece.begin; i < piece.end; ++i) indices.push_back(i);
    writer.write(images, indices, 0, held);
    learner->add(held, 0, piece.end == share.end);
  }
  Summed summed;
  summed.score = end_step(*learner, 1).score;
  summed.gradients = before;
  const auto after = elements(parameters.weights);
  for (std::size_t i = 0; i < after.size(); ++i) summed.gradients[i] -= after[i];
  return summed;
}

Summed step_of_world(std::int64_t world_size, std::int64_t samples) {
  std::vector<Summed> all(static_cast<std::size_t>(world_size));
  Threads::run(world_size, [&](Collective& collective) {
    all[static_cast<std::size_t>(collective.rank())] = step_of(collective, samples);
  });
  for (const Summed& one : all) EXPECT_EQ(one.gradients, all[0].gradients);
  return all[0];
}

TEST(GradientSum, ALargeNetworkHasOneWorkersGradientsAndRepeatsItsBits) {
  const ImageSet images = SyntheticImages(kSamples).set();
  const NetworkPlan plan = large_plan(images);
  ASSERT_EQ(plan_messages(plan, plan.parameters).early.size(), 2U);
  for (const std::int64_t samples : {kSamples, std::int64_t{2}}) {  // 2: some workers have none
    const Summed one = step_of_world(1, samples);
    for (const std::int64_t world_size : {2, 3, 5}) {
      SCOPED_TRACE(testing::Message() << samples << " samples, W=" << world_size);
      const Summed several = step_of_world(world_size, samples);
      EXPECT_EQ(several.score.samples, samples);
      for (std::size_t i = 0; i < one.gradients.size(); ++i) {
        ASSERT_NEAR(several.gradients[i], one.gradients[i], 1e-6);
      }
      EXPECT_EQ(step_of_world(world_size, samples).gradients, several.gradients);
    }
  }
}

}  // namespace
}  // namespace fettle::trainer
