#include "trainer/quantize/weight_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/model/layer_configs.h"
#include "trainer/quantize/calibration.h"
#include "trainer/quantize/quantized_plan.h"

namespace fettle::trainer {
namespace {

using testing::ElementsAre;

// Two outputs of a layer that takes two numbers, whose grid has the scale 1/2.
NetworkValues network_of(const api::LayerConfig& layer, const std::vector<float>& weights,
                         const std::vector<float>& biases) {
  api::ModelConfig model;
  model.layers = {layer};
  const SampleFormat format{{1, 1, 2}, 2, false, ""};
  const NetworkPlan plan = *plan_network(model, format);
  std::vector<float> all(static_cast<std::size_t>(plan.parameters));
  std::ranges::copy(weights, all.begin() + plan.layers[0].weights.offset);
  std::ranges::copy(biases, all.begin() + plan.layers[0].biases.offset);
  NetworkValues made = *quantized_network(model, format, all, {});
  EXPECT_TRUE(set_ranges({{0, 127.5F}}, made.plan, made.statistics).ok());
  return made;
}

IntegerWeights integers_of(const NetworkValues& network, std::int64_t bits) {
  return integer_weights(network.plan, network.plan.layers.back(), network.weights,
                         network.statistics, bits);
}

TEST(WeightGrid, HasAScaleForEachOutput) {
  const NetworkValues network = network_of(linear(2), {127, -63.6F, 2.54F, 1.27F}, {5, 6.003F});
  const IntegerWeights made = integers_of(network, 8);
  EXPECT_FLOAT_EQ(made.scales[0], 1);
  EXPECT_FLOAT_EQ(made.scales[1], 0.02F);
  EXPECT_THAT(made.weights, ElementsAre(127, -64, 127, 64));
  EXPECT_THAT(made.biases, ElementsAre(10, 600)) << "in steps of the products' scale";
}

TEST(WeightGrid, ASequencesBiasStaysFp32) {
  LayerPlan layer = network_of(linear(2), {127, 0, 1, 0}, {5, 6}).plan.layers.back();
  EXPECT_TRUE(has_integer_bias(layer));
  layer.tokens = true;
  EXPECT_FALSE(has_integer_bias(layer));
}

TEST(WeightGrid, OfSevenBitsEndsAt63) {
  const IntegerWeights made = integers_of(network_of(linear(2), {63, -21, 0, 0}, {}), 7);
  EXPECT_THAT(made.weights, ElementsAre(63, -21, 0, 0));
  EXPECT_THAT(made.scales, ElementsAre(1, 1)) << "zeros have a scale, too";
}

TEST(WeightGrid, ABiasOfAConvolutionCountsProducts) {
  const NetworkValues network = network_of(conv(2, 1), {127, 0, 12.7F, 0}, {5.2F, -0.07F});
  const IntegerWeights made = integers_of(network, 8);
  EXPECT_FLOAT_EQ(made.bias_scales[0], 0.5F);
  EXPECT_FLOAT_EQ(made.bias_scales[1], 0.05F);
  EXPECT_THAT(made.biases, ElementsAre(10, -1));
}

TEST(WeightGrid, ALargeBiasOnTinyWeightsStaysWithinItsInteger) {
  const NetworkValues network = network_of(conv(2, 1), {1e-12F, 0, 1, 0}, {3, 3});
  const IntegerWeights made = integers_of(network, 8);
  EXPECT_NEAR(static_cast<float>(made.biases[0]) * made.bias_scales[0], 3, 1e-5);
}

TEST(WeightGrid, RoundingTwiceIsRoundingOnce) {
  for (const std::int64_t bits : {7, 8}) {
    NetworkValues network = network_of(conv(2, 1), {0.37F, -0.11F, 1.3F, 0.9F}, {0.3F, -0.2F});
    const IntegerWeights once = integers_of(network, bits);
    round_to_integers(network.plan, network.statistics, bits, network.weights);
    const IntegerWeights twice = integers_of(network, bits);
    EXPECT_EQ(twice.weights, once.weights);
    EXPECT_EQ(twice.biases, once.biases);
  }
}

TEST(Calibration, TakesTheWholeRangeOrLeavesOutTheEnds) {
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) / 1000;
  values[500] = 50;
  values[501] = -50;
  RangeObserver observer;
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t i = 0; i < values.size(); i += 1000) {
      const auto part = std::span(values).subspan(i, 1000);
      pass == 0 ? observer.see(part) : observer.count(part);
    }
  }
  EXPECT_EQ(observer.whole().least, -50);
  EXPECT_EQ(observer.whole().most, 50);
  const float bin = 100.0F / RangeObserver::kBins;
  EXPECT_NEAR(observer.percentile().least, 0, bin);
  EXPECT_NEAR(observer.percentile().most, 1, bin);
}

TEST(Calibration, OfNothingButZerosIsZero) {
  RangeObserver observer;
  const std::vector<float> zeros(10);
  observer.see(zeros);
  observer.count(zeros);
  EXPECT_EQ(observer.percentile().least, 0);
  EXPECT_EQ(observer.percentile().most, 0);
}

// Positive numbers only: the range begins at 0, which the grid holds.
TEST(Calibration, HoldsZero) {
  RangeObserver observer;
  const std::vector<float> values = {3, 4, 5};
  observer.see(values);
  observer.count(values);
  EXPECT_EQ(observer.whole().least, 0);
  EXPECT_EQ(observer.percentile().least, 0);
  EXPECT_FLOAT_EQ(observer.percentile().most, 5);
}

}  // namespace
}  // namespace fettle::trainer
