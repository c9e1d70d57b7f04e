#include "trainer/model/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/model/layer_configs.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::HasSubstr;

NetworkPlan plan_of(const api::GptConfig& size, std::int64_t context, std::int64_t vocabulary) {
  api::ModelConfig model;
  model.gpt = size;
  const auto plan = plan_network(model, SampleFormat{{context, 1, 1}, vocabulary, true, ""});
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return *plan;
}

// GPT-2 small has 124,439,808 parameters with its tied embedding.
TEST(Gpt, HasAsManyParametersAsGpt2) {
  EXPECT_EQ(plan_of({.layers = 12, .heads = 12, .width = 768}, 1024, 50257).trained(), 124439808);
}

TEST(Gpt, WeightDecayAppliesToMatricesOnly) {
  const NetworkPlan plan = plan_of({.layers = 1, .heads = 2, .width = 16}, 8, 20);
  // Tokens and positions, queries to values, projection, the two matrices of the hidden layer.
  EXPECT_EQ(plan.decayed, 20 * 16 + 8 * 16 + 16 * 48 + 16 * 16 + 2 * 16 * 64);
}

double deviation_of(const InitialValues& values, const Block& block) {
  double squares = 0;
  for (std::int64_t i = 0; i < block.count; ++i) {
    squares += std::pow(values.weights[static_cast<std::size_t>(block.offset + i)], 2);
  }
  return std::sqrt(squares / static_cast<double>(block.count));
}

TEST(Gpt, StartsAsGpt2) {
  const NetworkPlan plan = plan_of({.layers = 8, .heads = 2, .width = 32}, 64, 100);
  const InitialValues start = initial_values(plan, 3);
  const LayerPlan& embedding = plan.layers[0];
  EXPECT_NEAR(deviation_of(start, embedding.weights), 0.02, 1e-3);
  EXPECT_NEAR(deviation_of(start, embedding.positions), 0.02, 1e-3);
  const LayerPlan& queries = plan.layers[2];
  const LayerPlan& projection = plan.layers[4];
  EXPECT_NEAR(deviation_of(start, queries.weights), 0.02, 1e-3);
  EXPECT_NEAR(deviation_of(start, projection.weights), 0.02 / 4, 5e-4);
  EXPECT_EQ(deviation_of(start, projection.biases), 0);
}

TEST(Gpt, TheHeadSharesTheEmbeddingsMatrix) {
  const NetworkPlan plan = plan_of({.layers = 1, .heads = 1, .width = 8}, 4, 11);
  const LayerPlan& head = plan.layers.back();
  EXPECT_EQ(head.shared.offset, plan.layers.front().weights.offset);
  EXPECT_EQ(head.shared.count, 11 * 8);
  EXPECT_EQ(head.weights.count, 0);
  EXPECT_EQ(head.output, (kernels::ImageShape{4, 1, 11}));
}

// Forward plus a backward pass of twice its work: 6 for each weight and token (positions are only
// added), and the products of attention with the keys before each token.
TEST(Gpt, CountsTheOperationsOfAToken) {
  const NetworkPlan plan = plan_of({.layers = 1, .heads = 1, .width = 8}, 4, 11);
  const double weights = 8 * 24 + 8 * 8 + 2 * 8 * 32 + 11 * 8;
  EXPECT_DOUBLE_EQ(plan.training_flops(), 6 * (4 * weights + 2 * 10 * 8));
}

struct BadModel {
  std::vector<api::LayerConfig> layers;
  std::string message;
};

TEST(Text, RefusesModelsThatDoNotFit) {
  const auto flatten = simple(LayerType::kFlatten);
  const auto head = simple(LayerType::kHead);
  auto pool = simple(LayerType::kMaxPool);
  pool.kernel = 1;
  pool.stride = 2;
  for (const auto& [layers, message] :
       {BadModel{{linear(12)}, "layers[0] (linear): takes token ids; begin model.layers with"},
        {{embedding(12), embedding(12), head}, "layers[1] (embedding): has no token ids before it"},
        {{embedding(12), attention(2), head},
         "layers[2] (head): takes 4 numbers a token, but the embedding has units 12; make them "
         "equal"},
        {{embedding(12), linear(30), attention(4), head},
         "layers[2] (attention): takes 30 numbers a token, which do not split into queries, keys "
         "and values of 4 equal heads; expected a multiple of 3 x heads"},
        {{embedding(12), flatten, attention(2)}, "takes a sequence of tokens"},
        {{embedding(12), linear(7), head},
         "takes 7 numbers a token, but the embedding has units 12; make them equal"},
        {{embedding(12), linear(7)},
         "ends with 6×1×7 numbers, but the text has 6 tokens a sample out of 9; end it with "
         "{type: head} or {type: linear, units: 9}"},
        {{embedding(12), flatten, linear(54)}, "without flatten"},
        {{embedding(12), simple(LayerType::kGlobalPool), linear(9)},
         "ends with 1×1×9 numbers, but the text has 6 tokens a sample out of 9"},
        {{embedding(12), pool, linear(9)}, "ends with 3×1×9 numbers"}}) {
    api::ModelConfig model;
    model.layers = layers;
    const auto plan = plan_network(model, SampleFormat{{6, 1, 1}, 9, true, ""});
    ASSERT_FALSE(plan.ok()) << message;
    EXPECT_THAT(plan.error().message, HasSubstr(message));
  }
}

TEST(Text, AnUntiedOutputIsALinearLayer) {
  api::ModelConfig model;
  model.layers = {embedding(12), linear(9)};
  const auto plan = plan_network(model, SampleFormat{{6, 1, 1}, 9, true, ""});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->trained(), 9 * 12 + 6 * 12 + 12 * 9 + 9);
}

TEST(Images, HaveNoUseForAnEmbedding) {
  api::ModelConfig model;
  model.layers = {embedding(12), linear(9)};
  const auto plan = plan_network(model, {6, 1, 1}, 9);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.error().message, HasSubstr("it is the first layer for text"));
}

}  // namespace
}  // namespace fettle::trainer
