#include "trainer/quantize/quantized_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/philox.h"
#include "kernels/aligned.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/network.h"
#include "trainer/quantize/weight_grid.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr kernels::ImageShape kImage{6, 6, 2};

// A network with random numbers; the variances are positive.
NetworkValues random_network(const api::ModelConfig& model, const SampleFormat& format) {
  NetworkValues made;
  made.plan = *plan_network(model, format);
  Random random(7);
  const auto number = [&random] { return static_cast<float>(random.below(2000)) / 1000 - 1; };
  for (std::int64_t i = 0; i < made.plan.parameters; ++i) made.weights.push_back(number());
  for (std::int64_t i = 0; i < made.plan.statistics; ++i) {
    made.statistics.push_back(std::abs(number()) + 0.5F);
  }
  return made;
}

// The logits of two samples of random pixels, by the reference; quantize layers pass them on, or
// round.
std::vector<float> logits_of(const NetworkValues& values, bool rounds = false) {
  const auto backend = *kernels::make_backend("reference", 1);
  auto network = Network::create(values.plan, *backend, {.max_samples = 2}, 0);
  EXPECT_TRUE(network.ok()) << network.error().message;
  EXPECT_TRUE((*network)->parameters().set_weights(values.weights, *backend).ok());
  (*network)->parameters().statistics.upload(values.statistics);
  (*network)->weights_changed();
  kernels::AlignedArray<float> pixels(static_cast<std::size_t>(2 * values.plan.input.size()));
  Random random(3);
  for (float& pixel : pixels) pixel = static_cast<float>(random.below(256)) / 255;
  const InputObserver passes = [](const LayerPlan&, const float*, std::int64_t) {};
  Pass pass{.samples = 2};
  if (!rounds) pass.observer = &passes;
  const auto* logits = static_cast<const float*>((*network)->forward(pass, pixels.data()));
  return {logits, logits + 2 * values.plan.classes};
}

api::ModelConfig model_of(std::vector<api::LayerConfig> layers) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  return model;
}

std::vector<LayerType> types_of(const NetworkPlan& plan) {
  std::vector<LayerType> types;
  for (const LayerPlan& layer : plan.layers) types.push_back(layer.type);
  return types;
}

void expect_the_same_logits(const api::ModelConfig& model, std::int64_t classes) {
  const SampleFormat format{kImage, classes, false, ""};
  const NetworkValues trained = random_network(model, format);
  const auto folded = quantized_network(model, format, trained.weights, trained.statistics);
  ASSERT_TRUE(folded.ok()) << folded.error().message;
  const std::vector<float> before = logits_of(trained), after = logits_of(*folded);
  float largest = 0;
  for (const float logit : before) largest = std::max(largest, std::abs(logit));
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(after[i], before[i], 1e-5 * largest) << i;
  }
}

TEST(QuantizedPlan, FoldsNormsBehindLinearAndConv) {
  const api::ModelConfig model =
      model_of({conv(4), simple(LayerType::kBatchNorm), simple(LayerType::kRelu), linear(5),
                simple(LayerType::kBatchNorm), linear(3)});
  expect_the_same_logits(model, 3);
  const NetworkValues random = random_network(model, {kImage, 3, false, ""});
  const auto made =
      quantized_network(model, {kImage, 3, false, ""}, random.weights, random.statistics);
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(types_of(made->plan),
              ElementsAre(LayerType::kQuantize, LayerType::kConv, LayerType::kQuantize,
                          LayerType::kLinear, LayerType::kQuantize, LayerType::kLinear));
  EXPECT_TRUE(made->plan.layer(1).relu);
  EXPECT_TRUE(made->plan.layer(1).bias);
  EXPECT_EQ(made->plan.layer(5).index, 5) << "the names of the trained network";
}

TEST(QuantizedPlan, KeepsANormBehindAnotherLayer) {
  expect_the_same_logits(
      model_of({simple(LayerType::kBatchNorm), conv(4), simple(LayerType::kMaxPool),
                simple(LayerType::kBatchNorm), linear(3)}),
      3);
}

TEST(QuantizedPlan, FoldsTheEndsOfBlocks) {
  const api::ModelConfig model =
      model_of({conv(4), simple(LayerType::kRelu), simple(LayerType::kResidual), conv(4),
                simple(LayerType::kBatchNorm), simple(LayerType::kAdd), simple(LayerType::kRelu),
                simple(LayerType::kResidual), conv(8), simple(LayerType::kBatchNorm),
                simple(LayerType::kShortcut), conv(8, 1), simple(LayerType::kBatchNorm),
                simple(LayerType::kAdd), simple(LayerType::kGlobalPool), linear(3)});
  expect_the_same_logits(model, 3);
  const SampleFormat format{kImage, 3, false, ""};
  const NetworkValues random = random_network(model, format);
  const auto made = quantized_network(model, format, random.weights, random.statistics);
  ASSERT_TRUE(made.ok());
  for (const LayerPlan& layer : made->plan.layers) {
    if (layer.type != LayerType::kAdd) continue;
    EXPECT_EQ(made->plan.layer(layer.source).type, LayerType::kQuantize);
    EXPECT_EQ(made->plan.layer(layer.shortcut).type, LayerType::kQuantize);
  }
  // The input of a block is quantised once for its convs and for its sum.
  EXPECT_EQ(ranges_of(made->plan, made->statistics).size(), 2U * 7);
}

TEST(QuantizedPlan, LeavesATextsResidualStreamAndHeadAlone) {
  api::ModelConfig model;
  model.gpt = {.layers = 1, .heads = 2, .width = 8};
  const SampleFormat format{{5, 1, 1}, 11, true, ""};
  const NetworkValues random = random_network(model, format);
  const auto made = quantized_network(model, format, random.weights, random.statistics);
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::int64_t quantized = 0;
  for (const LayerPlan& layer : made->plan.layers) {
    EXPECT_FALSE(layer.gelu_after || layer.gelu_before);
    if (layer.type == LayerType::kLinear) {
      EXPECT_TRUE(is_quantized(made->plan, layer));
      ++quantized;
    } else if (layer.type == LayerType::kAdd || layer.type == LayerType::kHead) {
      EXPECT_NE(made->plan.layer(layer.source).type, LayerType::kQuantize);
    }
  }
  EXPECT_EQ(quantized, 4);
}

TEST(QuantizedPlan, TakesRangesBack) {
  const api::ModelConfig model = model_of({conv(4), linear(3)});
  const SampleFormat format{kImage, 3, false, ""};
  NetworkValues network = random_network(model, format);
  network = *quantized_network(model, format, network.weights, network.statistics);
  const std::vector<float> ranges = {-1, 2, 0, 4};
  ASSERT_TRUE(set_ranges(ranges, network.plan, network.statistics).ok());
  EXPECT_EQ(ranges_of(network.plan, network.statistics), ranges);
  const auto refused = [&network](const std::vector<float>& given) {
    return set_ranges(given, network.plan, network.statistics).error().message;
  };
  EXPECT_THAT(refused({-1, 2, 0}), HasSubstr("too few ranges"));
  EXPECT_THAT(refused({-1, 2, 0, 4, 5}), HasSubstr("more ranges"));
}

// ---- Training on the grids ---------------------------------------------------------------------

// The plan of a training whose weights are rounded to `bits`.
NetworkPlan training_plan(const api::ModelConfig& model, const SampleFormat& format,
                          std::int64_t bits) {
  api::TrainerConfig config;
  config.model = model;
  api::QuantizeConfig& quantize = config.training.quantize.emplace();
  quantize.method = api::QuantizeMethod::kQat;
  quantize.weight_bits = bits;
  const auto plan = plan_network(config, format);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

std::vector<std::string> names_of_ranges(const NetworkPlan& plan) {
  std::vector<std::string> names;
  for (const LayerPlan& layer : plan.layers) {
    if (layer.type == LayerType::kQuantize) names.push_back(layer.name);
  }
  return names;
}

api::ModelConfig blocks() {
  return model_of({conv(4),
                   simple(LayerType::kBatchNorm),
                   simple(LayerType::kRelu),
                   simple(LayerType::kResidual),
                   conv(4),
                   simple(LayerType::kBatchNorm),
                   simple(LayerType::kRelu),
                   conv(4),
                   simple(LayerType::kBatchNorm),
                   simple(LayerType::kShortcut),
                   conv(4, 1),
                   simple(LayerType::kBatchNorm),
                   simple(LayerType::kAdd),
                   simple(LayerType::kRelu),
                   simple(LayerType::kResidual),
                   conv(4),
                   simple(LayerType::kAdd),
                   linear(5),
                   simple(LayerType::kGelu),
                   linear(3)});
}

TEST(TrainingPlan, KeepsNormsAndHasTheFoldedRanges) {
  const SampleFormat format{kImage, 3, false, ""};
  const NetworkPlan trained = training_plan(blocks(), format, 7);
  const NetworkPlan plain = *plan_network(blocks(), format);
  EXPECT_EQ(trained.parameters, plain.parameters);
  EXPECT_EQ(trained.decayed, plain.decayed);
  EXPECT_TRUE(trained.trains_quantized());
  EXPECT_FALSE(plain.trains_quantized());
  EXPECT_EQ(std::ranges::count(types_of(trained), LayerType::kBatchNorm), 4);
  for (const LayerPlan& layer : trained.layers) {
    const bool computes = layer.type == LayerType::kLinear || layer.type == LayerType::kConv;
    EXPECT_EQ(layer.weight_bits, computes ? 7 : 0) << layer.name;
  }
  // In the folded network the layer before a norm has its place.
  const NetworkPlan folded = *quantized_plan(blocks(), format);
  EXPECT_FALSE(folded.trains_quantized()) << "its weights are rounded already";
  const auto names = names_of_ranges(trained);
  const auto expected = names_of_ranges(folded);
  ASSERT_EQ(names.size(), expected.size());
  EXPECT_EQ(names.front(), expected.front());
  EXPECT_EQ(names.back(), expected.back());
}

// So a checkpoint's ranges fit the network that is exported.
TEST(TrainingPlan, ComputesWhatTheFoldedNetworkDoes) {
  const SampleFormat format{kImage, 3, false, ""};
  NetworkValues trained = random_network(blocks(), format);
  NetworkValues folded = *quantized_network(blocks(), format, trained.weights, trained.statistics);
  trained.plan = training_plan(blocks(), format, 8);
  trained.statistics.resize(static_cast<std::size_t>(trained.plan.statistics));
  std::vector<float> ranges;
  for (std::size_t i = 0; i < names_of_ranges(folded.plan).size(); ++i) {
    ranges.push_back(-20 - static_cast<float>(i));  // no two alike, and wide enough
    ranges.push_back(25 + static_cast<float>(i));
  }
  ASSERT_TRUE(set_ranges(ranges, folded.plan, folded.statistics).ok());
  ASSERT_TRUE(set_ranges(ranges, trained.plan, trained.statistics).ok());
  round_to_integers(folded.plan, folded.statistics, 8, folded.weights);
  const auto expected = logits_of(folded, /*rounds=*/true);
  const auto found = logits_of(trained, /*rounds=*/true);
  const auto exact = logits_of(trained);
  float difference = 0, error = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference = std::max(difference, std::abs(found[i] - expected[i]));
    error = std::max(error, std::abs(exact[i] - expected[i]));
  }
  // The folded network rounds biases, too, so a few numbers lie on the next step of their grids.
  EXPECT_LT(difference, error / 4);
}

TEST(QuantizedPlan, CountsBytes) {
  const api::ModelConfig model = model_of({linear(10), linear(3)});
  const SampleFormat format{{1, 1, 7}, 3, false, ""};
  NetworkValues network = random_network(model, format);
  network = *quantized_network(model, format, network.weights, network.statistics);
  EXPECT_EQ(int8_bytes(network.plan), (70 + 30) + 4 * (10 + 3) + 4 * (10 + 3));
}

TEST(QuantizedPlan, NeedsALayerThatCanComputeInEightBits) {
  const SampleFormat text{{5, 1, 1}, 11, true, ""};
  const api::ModelConfig no_linear = model_of({embedding(4), simple(LayerType::kHead)});
  EXPECT_THAT(check_quantizable(no_linear, text).error().message,
              HasSubstr("training.quantize has nothing to do"));
  EXPECT_TRUE(check_quantizable(model_of({linear(3)}), {{1, 1, 7}, 3, false, ""}).ok());
}

}  // namespace
}  // namespace fettle::trainer
