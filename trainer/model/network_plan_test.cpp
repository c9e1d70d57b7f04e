#include "trainer/model/network_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using kernels::ImageShape;

Result<NetworkPlan> plan(std::vector<api::LayerConfig> layers, ImageShape input = {28, 28, 1}) {
  api::ModelConfig model;
  model.kernel = 5;
  model.layers = std::move(layers);
  return plan_network(model, input, 10);
}

void expect_error(const Result<NetworkPlan>& result, const std::string& message) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, message);
}

TEST(NetworkPlan, InfersShapes) {
  const auto made = plan({conv(16), simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
                          simple(LayerType::kMaxPool), conv(32, 3), simple(LayerType::kRelu),
                          simple(LayerType::kGlobalPool), simple(LayerType::kFlatten), linear(10)});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto& layers = made->layers;
  ASSERT_EQ(layers.size(), 6U);  // both ReLUs are fused, flatten does nothing
  EXPECT_EQ(layers[0].output, (ImageShape{28, 28, 16}));
  EXPECT_FALSE(layers[0].relu);
  EXPECT_TRUE(layers[1].relu);
  EXPECT_EQ(layers[2].output, (ImageShape{14, 14, 16}));
  EXPECT_TRUE(layers[3].relu);
  EXPECT_EQ(layers[4].output, (ImageShape{1, 1, 32}));
  EXPECT_EQ(layers[5].output, (ImageShape{1, 1, 10}));
}

TEST(NetworkPlan, AConvolutionBeforeANormHasNoBiasUnlessAskedFor) {
  const auto norm = simple(LayerType::kBatchNorm);
  EXPECT_FALSE(plan({conv(4), norm, linear(10)})->layers[0].bias);
  EXPECT_TRUE(plan({conv(4), linear(10)})->layers[0].bias);
  auto biased = conv(4);
  biased.bias = true;
  EXPECT_TRUE(plan({biased, norm, linear(10)})->layers[0].bias);
}

TEST(NetworkPlan, WeightsThatDecayComeFirstAndBlocksStartOnCacheLines) {
  const auto made = plan({conv(3), simple(LayerType::kBatchNorm), linear(10)});
  ASSERT_TRUE(made.ok());
  const LayerPlan& norm = made->layers[1];
  const LayerPlan& last = made->layers[2];
  EXPECT_LT(last.weights.offset, made->decayed);
  EXPECT_GE(norm.weights.offset, made->decayed);
  EXPECT_GE(last.biases.offset, made->decayed);
  for (const auto& block : {norm.weights, norm.biases, last.weights, last.biases}) {
    EXPECT_EQ(block.offset % 16, 0);
  }
  EXPECT_EQ(made->statistics, 32);
  EXPECT_EQ(made->trained(), 3 * 25 + 3 + 3 + 10 * 28 * 28 * 3 + 10);
}

TEST(NetworkPlan, NormsOfRowsNeverDecayAndFuseNothing) {
  const auto made = plan({conv(3), simple(LayerType::kLayerNorm), simple(LayerType::kRelu),
                          linear(4), simple(LayerType::kRmsNorm), linear(10)});
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->layers.size(), 6U);
  const LayerPlan& layer_norm = made->layers[1];
  const LayerPlan& rms_norm = made->layers[4];
  EXPECT_FALSE(layer_norm.relu);
  EXPECT_TRUE(made->layers[0].bias);  // only batchNorm would subtract it again
  EXPECT_EQ(layer_norm.weights.count, 3);
  EXPECT_EQ(layer_norm.biases.count, 3);
  EXPECT_EQ(rms_norm.weights.count, 4);
  EXPECT_EQ(rms_norm.biases.count, 0);
  EXPECT_GE(layer_norm.weights.offset, made->decayed);
  EXPECT_GE(rms_norm.weights.offset, made->decayed);
}

TEST(NetworkPlan, ABlockRefersToWhereItsPartsBegin) {
  const auto made = plan({conv(3), simple(LayerType::kResidual), simple(LayerType::kRelu), conv(4),
                          simple(LayerType::kShortcut), conv(4, 1), simple(LayerType::kAdd),
                          simple(LayerType::kRelu), linear(10)});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto& layers = made->layers;
  ASSERT_EQ(layers.size(), 6U);
  EXPECT_FALSE(layers[0].relu);  // the shortcut reads the value before the ReLU
  EXPECT_EQ(layers[1].source, 0);
  EXPECT_EQ(layers[2].source, 1);
  EXPECT_EQ(layers[3].source, 0);
  EXPECT_EQ(layers[4].source, 2);
  EXPECT_EQ(layers[4].shortcut, 3);
  EXPECT_TRUE(layers[4].relu);
  EXPECT_EQ(layers[5].source, 4);
}

// Dropout of rate 0 is no layer, unless a block would be empty without it.
TEST(NetworkPlan, DropoutOfNothingIsLeftOut) {
  const auto size_of = [](std::vector<api::LayerConfig> layers) {
    const auto made = plan(std::move(layers));
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made->layers.size();
  };
  EXPECT_EQ(size_of({dropout(0.1), linear(5), dropout(0.1), linear(10)}), 4U);
  EXPECT_EQ(size_of({dropout(0), linear(5), dropout(0), linear(10)}), 2U);
  EXPECT_EQ(
      size_of({simple(LayerType::kResidual), dropout(0), simple(LayerType::kAdd), linear(10)}), 3U);
}

// Only if each of the three is the sole reader of the output before it.
TEST(NetworkPlan, AGeluBetweenLinearLayersIsTheirs) {
  const auto gelu = simple(LayerType::kGelu);
  const auto relu = simple(LayerType::kRelu);
  const auto residual = simple(LayerType::kResidual);
  const auto fused = [](std::vector<api::LayerConfig> layers) {
    const auto made = plan(std::move(layers));
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::ranges::any_of(
        made->layers, [](const LayerPlan& layer) { return layer.gelu_before.has_value(); });
  };
  EXPECT_TRUE(fused({linear(5), gelu, linear(10)}));
  EXPECT_TRUE(fused({linear(5), gelu, dropout(0), linear(10)}));
  EXPECT_FALSE(fused({linear(5), gelu, dropout(0.1), linear(10)}));
  EXPECT_FALSE(fused({linear(5), relu, gelu, linear(10)}));
  EXPECT_FALSE(fused({conv(5), gelu, linear(10)}));
  EXPECT_FALSE(fused({linear(5), residual, gelu, linear(5), simple(LayerType::kAdd), linear(10)}));
  EXPECT_FALSE(fused({linear(5), gelu, residual, linear(5), simple(LayerType::kAdd), linear(10)}));
}

TEST(NetworkPlan, ABatchNormEndsItsBlock) {
  const auto norm = simple(LayerType::kBatchNorm);
  const auto residual = simple(LayerType::kResidual);
  const auto add = simple(LayerType::kAdd);
  const auto norm_of = [](std::vector<api::LayerConfig> layers) {
    const auto made = plan(std::move(layers));
    EXPECT_TRUE(made.ok()) << made.error().message;
    return *std::ranges::find(made->layers, LayerType::kBatchNorm, &LayerPlan::type);
  };
  const LayerPlan with_relu =
      norm_of({residual, conv(1), norm, add, simple(LayerType::kRelu), linear(10)});
  EXPECT_TRUE(with_relu.ends_block && with_relu.end_relu && !with_relu.relu);
  const LayerPlan without = norm_of({residual, conv(1), norm, add, linear(10)});
  EXPECT_TRUE(without.ends_block && !without.end_relu);
  EXPECT_FALSE(norm_of({residual, conv(1), norm, conv(1), add, linear(10)}).ends_block);
  EXPECT_FALSE(
      norm_of({residual, conv(1), norm, simple(LayerType::kRelu), add, linear(10)}).ends_block);
}

TEST(NetworkPlan, RefusesBlocksThatDoNotFit) {
  const auto residual = simple(LayerType::kResidual);
  const auto shortcut = simple(LayerType::kShortcut);
  const auto add = simple(LayerType::kAdd);
  expect_error(plan({conv(3), residual, conv(4), add, linear(10)}),
               "model.layers[3] (add): the layers of the block give 28×28×4, its shortcut 28×28×3; "
               "put {type: shortcut} and a conv with kernel 1 and that stride and number of "
               "channels before it");
  expect_error(plan({conv(3), add, linear(10)}),
               "model.layers[1] (add): is outside of a block; begin it with {type: residual}");
  expect_error(plan({conv(3), residual, shortcut, conv(3), add, linear(10)}),
               "model.layers[2] (shortcut): the block has no layers before it");
  expect_error(plan({residual, conv(1), shortcut, conv(1), shortcut, conv(1), add, linear(10)}),
               "model.layers[4] (shortcut): the block has a shortcut already");
  expect_error(plan({residual, conv(1), linear(10)}),
               "model.layers[0] (residual): the block does not end; put {type: add} after its "
               "layers");
}

TEST(NetworkPlan, CountsFloatingPointOperations) {
  // The first layer's gradient by the input is not needed.
  EXPECT_EQ(plan({linear(20), linear(10)})->training_flops(), 2 * (2 * 784 * 20 + 3 * 20 * 10));
}

TEST(NetworkPlan, NamesTheLayerThatDoesNotFit) {
  expect_error(plan({simple(LayerType::kGlobalPool), simple(LayerType::kMaxPool), linear(10)}),
               "model.layers[1] (maxPool): kernel 2 does not fit 1×1");
  auto unpadded = conv(4, 7);
  unpadded.padding = 0;
  expect_error(plan({unpadded, linear(10)}, {6, 6, 1}),
               "model.layers[0] (conv): kernel 7 does not fit 6×6 (with its padding)");
  expect_error(plan({linear(10), simple(LayerType::kLinear)}),
               "model.layers[1] (linear): units is missing; say how many outputs it has");
}

TEST(NetworkPlan, TheLastLayerGivesOneOutputAClass) {
  expect_error(plan({linear(64)}),
               "model.layers ends with 64 outputs, but the data have 10 classes; end it with "
               "{type: linear, units: 10}");
  expect_error(plan({}), "model.layers is empty; a model has at least one layer");
}

TEST(NetworkPlan, RefusesModelsThatNoMachineHolds) {
  EXPECT_THAT(plan({linear(100'000'000), linear(100'000'000), linear(10)}).error().message,
              testing::HasSubstr("weights; at most"));
}

TEST(NetworkPlan, FrozenLayersComeFirst) {
  api::ModelConfig model;
  const auto norm = simple(LayerType::kBatchNorm);
  model.layers = {conv(3), norm, conv(2), norm, linear(10)};
  model.freeze = 3;
  const auto made = plan_network(model, {28, 28, 1}, 10);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(made->layers[2].frozen);
  EXPECT_TRUE(made->layers[3].is_trained());
  EXPECT_EQ(made->first_trained(), made->layers[4].weights.offset);
  EXPECT_EQ(made->frozen_statistics, made->layers[3].running_mean.offset);
  // One product for each convolution; three for the last layer, with its two gradients.
  EXPECT_EQ(made->training_flops(),
            2 * (made->layers[0].multiply_adds + made->layers[2].multiply_adds +
                 3 * made->layers[4].multiply_adds));
  model.freeze = 5;
  EXPECT_THAT(plan_network(model, {28, 28, 1}, 10).error().message,
              testing::HasSubstr("model.freeze leaves nothing to train"));
}

TEST(NetworkPlan, AFrozenEmbeddingFreezesItsHead) {
  api::ModelConfig model;
  model.gpt = {.layers = 2, .heads = 2, .width = 8};
  model.freeze = 1;  // the embedding and the first block
  const auto made = plan_network(model, SampleFormat{{6, 1, 1}, 11, true, "11 tokens"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(made->layers.front().frozen);
  EXPECT_TRUE(made->layers.back().frozen);
  std::vector<std::int64_t> trained;
  for (const LayerPlan& layer : made->layers) {
    if (layer.is_trained()) trained.push_back(layer.index);
  }
  EXPECT_EQ(trained, (std::vector<std::int64_t>{17, 18, 20, 24, 25, 27, 30}));
}

TEST(NetworkPlan, AStageIsALayerWithWeightsOrABlock) {
  const auto norm = simple(LayerType::kBatchNorm);
  const auto made = plan({conv(3), norm, simple(LayerType::kResidual), conv(3), norm, conv(3),
                          simple(LayerType::kAdd), norm, linear(10)});
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::vector<std::int64_t> stages;
  for (const LayerPlan& layer : made->layers) stages.push_back(layer.stage);
  EXPECT_EQ(stages, (std::vector<std::int64_t>{1, 1, 2, 2, 2, 2, 2, 3}));
}

TEST(NetworkPlan, ANetworkNeedsSomethingToTrain) {
  EXPECT_THAT(plan({simple(LayerType::kFlatten)}, {1, 1, 10}).error().message,
              testing::HasSubstr("nothing to train"));
}

}  // namespace
}  // namespace fettle::trainer
