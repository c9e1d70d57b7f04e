#include "trainer/files/named_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::ElementsAre;

NetworkPlan plan_of(std::vector<api::LayerConfig> layers, kernels::ImageShape input,
                    std::int64_t classes) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  auto plan = plan_network(model, input, classes);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

std::vector<std::string> described(const NetworkPlan& plan) {
  std::vector<std::string> all;
  for (const NamedWeight& weight : named_weights(plan)) {
    std::string text = weight.name + " [";
    for (const std::int64_t side : weight.shape) text += std::to_string(side) + " ";
    text.back() = ']';
    all.push_back(text);
  }
  return all;
}

// Values 0, 1, 2, ... of the tensor with this name, in the order of the file.
std::vector<float> order_of(const NetworkPlan& plan, const std::string& name) {
  for (const NamedWeight& weight : named_weights(plan)) {
    if (weight.name != name) continue;
    std::vector<float> array(static_cast<std::size_t>(weight.block.offset + weight.block.count));
    std::iota(array.begin() + weight.block.offset, array.end(), 0.0F);
    return values_of(weight, array);
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TEST(NamedWeights, AreNamedAndShapedAsInPyTorch) {
  const NetworkPlan plan =
      plan_of({conv(3), simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
               simple(LayerType::kMaxPool), conv(4, 1), simple(LayerType::kFlatten), linear(5)},
              {4, 4, 2}, 5);
  EXPECT_THAT(described(plan),
              ElementsAre("layers.0.weight [3 2 3 3]", "layers.1.weight [3]", "layers.1.bias [3]",
                          "layers.1.running_mean [3]", "layers.1.running_var [3]",
                          "layers.4.weight [4 3 1 1]", "layers.4.bias [4]",
                          "layers.6.weight [5 16]", "layers.6.bias [5]"));
}

TEST(NamedWeights, OfATextShareTheHead) {
  api::ModelConfig model;
  model.gpt = api::GptConfig{.layers = 1, .heads = 2, .width = 8};
  const auto plan = plan_network(model, SampleFormat{{6, 1, 1}, 11, true, "11 tokens"});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_THAT(described(*plan),
              ElementsAre("layers.0.token.weight [11 8]", "layers.0.position.weight [6 8]",
                          "layers.3.weight [8]", "layers.3.bias [8]", "layers.4.weight [24 8]",
                          "layers.4.bias [24]", "layers.6.weight [8 8]", "layers.6.bias [8]",
                          "layers.10.weight [8]", "layers.10.bias [8]", "layers.11.weight [32 8]",
                          "layers.11.bias [32]", "layers.13.weight [8 32]", "layers.13.bias [8]",
                          "layers.16.weight [8]", "layers.16.bias [8]"));
}

TEST(NamedWeights, PutTheChannelsOfAConvolutionFirst) {
  const NetworkPlan plan = plan_of({conv(2, 3), linear(2)}, {1, 1, 2}, 2);
  // Two rows of [9 pixels, 2 channels].
  EXPECT_THAT(order_of(plan, "layers.0.weight"),
              ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 1, 3, 5, 7, 9, 11, 13, 15, 17, 18, 20, 22,
                          24, 26, 28, 30, 32, 34, 19, 21, 23, 25, 27, 29, 31, 33, 35));
}

TEST(NamedWeights, PutTheChannelsOfAFlattenedImageFirst) {
  const std::vector<std::vector<api::LayerConfig>> networks = {
      {simple(LayerType::kFlatten), linear(2)},
      {linear(2)},
      {simple(LayerType::kFlatten), dropout(0.5), simple(LayerType::kGelu), linear(2)}};
  for (const auto& layers : networks) {
    const NetworkPlan plan = plan_of(layers, {1, 2, 3}, 2);
    const std::string name = "layers." + std::to_string(layers.size() - 1) + ".weight";
    EXPECT_THAT(order_of(plan, name), ElementsAre(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11));
    EXPECT_EQ(flattening_of_source(plan, plan.layers[0]), Flattening::kChannelsFirst);
  }
}

// The order of the list is the trainer's where another layer than a linear one depends on it.
TEST(NamedWeights, KeepTheOrderOfAListThatOtherLayersRead) {
  const NetworkPlan norm = plan_of(
      {simple(LayerType::kFlatten), simple(LayerType::kLayerNorm), linear(2)}, {1, 2, 3}, 2);
  EXPECT_EQ(flattening_of_source(norm, norm.layers[0]), Flattening::kChannelsLast);
  EXPECT_EQ(flattening_of_source(norm, norm.layers[1]), Flattening::kNone);
  EXPECT_EQ(order_of(norm, "layers.2.weight")[1], 1);

  const NetworkPlan block =
      plan_of({simple(LayerType::kFlatten), simple(LayerType::kResidual), simple(LayerType::kGelu),
               linear(6), simple(LayerType::kAdd), linear(2)},
              {1, 2, 3}, 2);
  EXPECT_EQ(flattening_of_source(block, block.layers[0]), Flattening::kChannelsFirst);
  EXPECT_EQ(order_of(block, "layers.3.weight")[1], 3);
  EXPECT_EQ(flattening_of_source(block, block.layers[2]), Flattening::kNone);
  EXPECT_EQ(flattening_of_shortcut(block, block.layers[2]), Flattening::kChannelsLast);
  EXPECT_EQ(order_of(block, "layers.5.weight")[1], 1);

  const NetworkPlan logits =
      plan_of({conv(2), simple(LayerType::kFlatten), simple(LayerType::kGelu)}, {1, 2, 3}, 4);
  EXPECT_EQ(flattening_of_source(logits, logits.layers[1]), Flattening::kChannelsLast);
}

TEST(NamedWeights, CoverEveryParameterOnce) {
  api::ModelConfig gpt;
  gpt.gpt = api::GptConfig{.layers = 2, .heads = 2, .width = 16};
  const NetworkPlan plans[] = {
      plan_of({conv(3), simple(LayerType::kBatchNorm), linear(5)}, {4, 4, 2}, 5),
      *plan_network(gpt, SampleFormat{{6, 1, 1}, 11, true, "11 tokens"})};
  for (const NetworkPlan& plan : plans) {
    std::int64_t count = 0;
    std::vector<bool> seen(static_cast<std::size_t>(plan.parameters));
    for (const NamedWeight& weight : named_weights(plan)) {
      if (weight.of_statistics) continue;
      count += weight.block.count;
      for (std::int64_t i = 0; i < weight.block.count; ++i) {
        const auto at = static_cast<std::size_t>(weight.block.offset + i);
        EXPECT_FALSE(seen[at]) << weight.name;
        seen[at] = true;
      }
    }
    EXPECT_EQ(count, plan.trained());
  }
}

}  // namespace
}  // namespace fettle::trainer
