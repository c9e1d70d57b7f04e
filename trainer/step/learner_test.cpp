#include "trainer/step/learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/optimizer/step.h"
#include "trainer/data/batching.h"
#include "trainer/data/split.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/elements.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"

namespace fettle::trainer {
namespace {

using api::LayerType;

constexpr std::int64_t kBatch = 50;
constexpr std::int64_t kSamples = 120;  // the last batch has 20

struct ThreeSteps {
  std::vector<float> weights;
  std::vector<double> losses;
};

// Trains one epoch of three steps as worker `collective.rank()`.
ThreeSteps train(Collective& collective, std::int64_t max_samples) {
  const ImageSet images = SyntheticImages(kSamples).set();
  api::ModelConfig model;
  model.layers = {conv(3), simple(LayerType::kRelu), dropout(0.25), linear(4)};
  const NetworkPlan plan = *plan_network(model, images.shape(), images.classes());
  api::TrainingConfig config;
  config.backend = api::BackendKind::kReference;
  config.momentum = 0.9;
  config.clip_norm = 0.5;
  auto learner = *Learner::create(
      config, plan, shape_of_step(config, max_samples, collective.world_size()), 4, collective);
  const BatchWriter writer({0.3, 0.2}, {.flip = true, .shift = 1}, kernels::DataType::kFloat32, 4);
  const Indices order = epoch_order(keyed_permutation(kSamples, 1), 4, 0);

  ThreeSteps result;
  Batch batch = writer.make_batch(images, max_samples);
  for (std::int64_t begin = 0; begin < kSamples; begin += kBatch) {
    const Range global{begin, std::min(begin + kBatch, kSamples)};
    const Range share = share_of(global, collective.world_size(), collective.rank());
    for (const Range& piece : micro_batches(share, max_samples)) {
      writer.write(images, {order.data() + piece.begin, static_cast<std::size_t>(piece.size())}, 0,
                   batch);
      learner->add(batch, 0);
    }
    const Learner::Step step = end_step(*learner, 0.1);
    EXPECT_EQ(step.score.samples, global.size());
    result.losses.push_back(step.score.mean_loss());
  }
  const auto& weights = learner->network().parameters().weights;
  result.weights = weights.download();
  return result;
}

ThreeSteps train_world(std::int64_t world_size, std::int64_t max_samples) {
  std::vector<ThreeSteps> results(static_cast<std::size_t>(world_size));
  Threads::run(world_size, [&](Collective& member) {
    results[static_cast<std::size_t>(member.rank())] = train(member, max_samples);
  });
  for (const auto& result : results) EXPECT_EQ(result.weights, results[0].weights);
  return results[0];
}

// The design's promise: for one global batch, loss and weights do not depend on the number of
// workers or on the samples that each holds at once, even in the last, partial batch.
TEST(Learner, AccumulationIsExactForEveryWorldSizeAndMicroBatch) {
  const ThreeSteps whole = train_world(1, kBatch);
  for (const auto& [world_size, max_samples] :
       {std::pair{1, 50}, {1, 7}, {1, 1}, {2, 25}, {3, 8}, {7, 2}, {16, 4}}) {
    SCOPED_TRACE(testing::Message() << "W=" << world_size << " m=" << max_samples);
    const ThreeSteps split = train_world(world_size, max_samples);
    ASSERT_EQ(split.losses.size(), whole.losses.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i) {
      EXPECT_NEAR(split.losses[i], whole.losses[i], 1e-6);
    }
    for (std::size_t i = 0; i < whole.weights.size(); ++i) {
      ASSERT_NEAR(split.weights[i], whole.weights[i], 1e-6);
    }
  }
}

api::TrainingConfig reference_sgd() {
  api::TrainingConfig config;
  config.backend = api::BackendKind::kReference;
  return config;
}

struct OneLayer {
  explicit OneLayer(const api::TrainingConfig& config) {
    api::ModelConfig model;
    model.layers = {simple(LayerType::kBatchNorm), linear(3)};
    plan = *plan_network(model, {1, 1, 2}, 3);
    learner = *Learner::create(config, plan, shape_of_step(config, 1), 0, single);
  }
  Parameters& parameters() { return learner->network().parameters(); }
  SingleProcess single;
  NetworkPlan plan;
  std::unique_ptr<Learner> learner;
};

// Runs an update with gradients that are sums over this number of samples.
kernels::StepControl update(OneLayer& one, float samples, float learning_rate) {
  Optimizer& optimizer = one.learner->optimizer();
  one.parameters().step_sums()->samples = samples;
  optimizer.set_input({.learning_rates = {learning_rate}});
  optimizer.enqueue_update();
  optimizer.enqueue_result();
  return optimizer.take_result();
}

TEST(Optimizer, WeightDecaySparesBiasesAndNormalisation) {
  api::TrainingConfig config = reference_sgd();
  config.weight_decay = 0.5;
  OneLayer one(config);
  Parameters& parameters = one.parameters();
  std::ranges::fill(elements(parameters.weights), 1.0F);
  ASSERT_TRUE(update(one, 1, 0.1F).apply);
  EXPECT_FLOAT_EQ(parameters.values(one.plan.layers[1].weights)[0], 0.95F);
  EXPECT_EQ(parameters.values(one.plan.layers[1].biases)[0], 1.0F);
  EXPECT_EQ(parameters.values(one.plan.layers[0].weights)[0], 1.0F);
  EXPECT_EQ(parameters.values(one.plan.layers[0].biases)[0], 1.0F);
}

// All copies: a GPU's libraries read biases in the type of the activations, too.
TEST(Optimizer, RoundsWhatItHasUpdated) {
  api::TrainingConfig config = reference_sgd();
  config.precision = api::Precision::kBf16;
  OneLayer one(config);
  Parameters& parameters = one.parameters();
  std::ranges::fill(elements(parameters.gradients).first(parameters.weights.size()), 0.375F);
  const std::vector<float> before = parameters.weights.download();
  ASSERT_TRUE(update(one, 1, 0.01F).apply);
  const std::vector<float> weights = parameters.weights.download();
  EXPECT_NE(weights, before);
  std::vector<std::uint16_t> expected(weights.size());
  const auto backend = *kernels::make_backend("reference", 1);
  backend->round(kernels::DataType::kBFloat16, std::ssize(weights), weights.data(),
                 expected.data());
  EXPECT_EQ(parameters.rounded.download(), expected);
}

TEST(Optimizer, ClipsTheNormOfTheMeanGradient) {
  api::TrainingConfig config = reference_sgd();
  config.clip_norm = 1;
  OneLayer one(config);
  Parameters& parameters = one.parameters();
  std::ranges::fill(elements(parameters.weights), 0.0F);
  elements(parameters.gradients)[0] = 40;  // sums over 10 samples: the mean has norm 5
  elements(parameters.gradients)[1] = 30;
  ASSERT_TRUE(update(one, 10, 1).apply);
  EXPECT_NEAR(elements(parameters.weights)[0], -0.8, 1e-5);
  EXPECT_NEAR(elements(parameters.weights)[1], -0.6, 1e-5);
}

TEST(Optimizer, ANormThatIsNotFiniteChangesNothing) {
  for (const std::optional<double> clip_norm : {std::optional<double>(), std::optional(1.0)}) {
    api::TrainingConfig config = reference_sgd();
    config.clip_norm = clip_norm;
    OneLayer one(config);
    const std::vector<float> before = one.parameters().weights.download();
    elements(one.parameters().gradients)[1] = INFINITY;
    const kernels::StepControl control = update(one, 1, 1);
    EXPECT_FALSE(control.apply);
    EXPECT_EQ(control.updates, 0);
    EXPECT_EQ(before, one.parameters().weights.download());
  }
}

// A world of one that counts the messages for which other workers would have to wait.
class CountedMessages final : public Collective {
 public:
  std::int64_t world_size() const override { return 1; }
  std::int64_t rank() const override { return 0; }
  Status sum(std::span<float>) override { return count(); }
  Status sum(std::span<double>) override { return count(); }
  Status broadcast(std::span<std::byte>) override { return count(); }
  int messages = 0;

 private:
  Status count() {
    ++messages;
    return success();
  }
};

TEST(Learner, AStepIsOneMessage) {
  CountedMessages counted;
  EXPECT_EQ(train(counted, 7).losses.size(), 3U);
  EXPECT_EQ(counted.messages, 3);
}

// Gives the layer's learner the gradients of one sample of class 0.
Batch add_sample(OneLayer& one, kernels::DataType type) {
  const BatchWriter writer({0, 1}, {}, type, 0);
  const ImageSet image({1, 1, 2}, Bytes::copy_of(std::vector<std::uint8_t>{1, 2}),
                       Bytes::copy_of(std::vector<std::uint8_t>{0}));
  Batch batch = writer.make_batch(image, 1);
  const std::int64_t first = 0;
  writer.write(image, {&first, 1}, 0, batch);
  one.learner->add(batch, 0);
  return batch;
}

TEST(Learner, GradientsThatAreNotFiniteAreForgottenWithTheStep) {
  OneLayer one(reference_sgd());
  Parameters& parameters = one.parameters();
  const std::vector<float> before = parameters.weights.download();
  add_sample(one, kernels::DataType::kFloat32);
  elements(parameters.gradients)[1] = NAN;
  EXPECT_FALSE(end_step(*one.learner, 0.1).finite);
  EXPECT_EQ(before, parameters.weights.download());
  EXPECT_THAT(elements(parameters.gradients), testing::Each(0.0F));
}

api::TrainingConfig fp16_sgd() {
  api::TrainingConfig config;  // backend auto: only the reference has fp16
  config.precision = api::Precision::kFp16;
  config.momentum = 0.9;
  config.global_batch = 1;
  return config;
}

TEST(Fp16, ASkippedStepChangesNothingButTheScale) {
  OneLayer one(fp16_sgd());
  Parameters& parameters = one.parameters();
  add_sample(one, kernels::DataType::kFloat16);
  ASSERT_TRUE(end_step(*one.learner, 0.1).finite);
  const std::vector<float> weights = parameters.weights.download();
  const std::vector<float> statistics = parameters.statistics.download();
  const std::vector<float> momentum = one.learner->optimizer().state1.download();

  add_sample(one, kernels::DataType::kFloat16);
  EXPECT_NE(statistics, parameters.statistics.download());  // the forward pass moved them
  elements(parameters.gradients)[1] = INFINITY;
  const Learner::Step step = end_step(*one.learner, 0.1);
  EXPECT_TRUE(step.finite);
  EXPECT_TRUE(step.skipped);
  EXPECT_EQ(weights, parameters.weights.download());
  EXPECT_EQ(statistics, parameters.statistics.download());
  EXPECT_EQ(momentum, one.learner->optimizer().state1.download());
  EXPECT_EQ(one.learner->optimizer().control().updates, 1);
  EXPECT_THAT(elements(parameters.gradients), testing::Each(0.0F));
  EXPECT_EQ(one.learner->optimizer().control().loss_scale, (kernels::LossScale{32768, 0, 1}));
}

TEST(Fp16, OverflowAtTheSmallestScaleIsAFailure) {
  OneLayer one(fp16_sgd());
  one.learner->optimizer().restore(0, {.scale = kernels::kSmallestLossScale});
  add_sample(one, kernels::DataType::kFloat16);
  elements(one.parameters().gradients)[1] = NAN;
  const Learner::Step step = end_step(*one.learner, 0.1);
  EXPECT_FALSE(step.finite);
  EXPECT_FALSE(step.skipped);
}

// The scale cancels, so only the rounding of the gradients could depend on it; for powers of two it
// does not, unless something over- or underflows.
TEST(Fp16, TheScaleDoesNotChangeTheStep) {
  std::vector<std::vector<float>> weights;
  for (const double scale : {256.0, 4096.0}) {
    OneLayer one(fp16_sgd());
    one.learner->optimizer().restore(0, {.scale = scale});
    add_sample(one, kernels::DataType::kFloat16);
    ASSERT_FALSE(end_step(*one.learner, 0.1).skipped);
    weights.push_back(one.parameters().weights.download());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Fp16, TheFastBackendSaysThatItHasNone) {
  api::TrainingConfig config = fp16_sgd();
  config.backend = api::BackendKind::kOnednn;
  api::ModelConfig model;
  model.layers = {linear(3)};
  const NetworkPlan plan = *plan_network(model, {1, 1, 2}, 3);
  SingleProcess single;
  const auto made = Learner::create(config, plan, shape_of_step(config, 1), 0, single);
  ASSERT_FALSE(made.ok());
  if (kernels::make_backend("onednn", 1).ok()) {
    EXPECT_THAT(made.error().message, testing::HasSubstr("has no fp16: use precision bf16"));
  }
}

}  // namespace
}  // namespace fettle::trainer
