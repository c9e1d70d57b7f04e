// The state that a device keeps from one training to the next. On the reference backend, and on the
// emulated GPU, which counts its memory.
#include "trainer/step/training_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "api/fields/enum_names.h"
#include "kernels/backends/cuda/backend.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/elements.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using kernels::DataType;

NetworkPlan plan_of(std::int64_t outputs) {
  api::ModelConfig model;
  model.layers = {conv(2), simple(api::LayerType::kBatchNorm), linear(outputs)};
  return *plan_network(model, {8, 8, 1}, outputs);
}

class TrainingDeviceTest : public testing::Test {
 protected:
  TrainingDevice cpu_{*kernels::make_backend("reference", 1)};
  TrainingDevice gpu_{*kernels::cuda_backend()};
};

TEST_F(TrainingDeviceTest, ANetworkIsUsedAgainAsIfItWereNew) {
  const auto first = cpu_.network(plan_of(4), {5, DataType::kBFloat16}, 7, false, {});
  ASSERT_TRUE(first.ok());
  Parameters& parameters = (*first)->parameters();
  const std::vector<float> weights = parameters.weights.download();
  const std::vector<float> statistics = parameters.statistics.download();
  const std::vector<std::uint16_t> rounded = parameters.rounded.download();
  // The state that an interrupted step leaves.
  std::ranges::fill(elements(parameters.weights), 3.0F);
  std::ranges::fill(elements(parameters.statistics), 3.0F);
  std::ranges::fill(elements(parameters.gradients), 3.0F);
  std::ranges::fill(elements(parameters.rounded), std::uint16_t{3});

  const auto second = cpu_.network(plan_of(4), {5, DataType::kBFloat16}, 7, false, {});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*second, *first) << "the same object, with what its operations have planned";
  EXPECT_EQ(parameters.weights.download(), weights);
  EXPECT_EQ(parameters.statistics.download(), statistics);
  EXPECT_EQ(parameters.rounded.download(), rounded);
  EXPECT_THAT(elements(parameters.gradients), testing::Each(0.0F));
}

TEST_F(TrainingDeviceTest, AnotherShardOfTheSameNetworkIsNoOtherNetwork) {
  const auto whole = cpu_.network(plan_of(4), {5, DataType::kBFloat16}, 7, false, {});
  ASSERT_TRUE(whole.ok());
  const std::vector<float> weights = (*whole)->parameters().weights.download();
  const auto sharded = cpu_.network(plan_of(4), {5, DataType::kBFloat16}, 7, false, Range{32, 80});
  ASSERT_TRUE(sharded.ok());
  EXPECT_EQ(*sharded, *whole);
  const std::vector<float> shard = (*sharded)->parameters().shard.download();
  EXPECT_EQ(shard, std::vector<float>(weights.begin() + 32, weights.begin() + 80));
}

TEST_F(TrainingDeviceTest, OtherOptionsHaveANetworkOfTheirOwnInThePlaceOfTheOld) {
  const std::int64_t free = *gpu_.backend().free_memory();
  ASSERT_TRUE(gpu_.network(plan_of(4), {50, DataType::kFloat32}, 7, false, {}).ok());
  const std::int64_t large = gpu_.kept_bytes();
  EXPECT_GT(large, 50 * 8 * 8 * 2 * 4) << "the convolution's output alone";
  EXPECT_LE(*gpu_.backend().free_memory(), free - large);
  ASSERT_TRUE(gpu_.network(plan_of(4), {5, DataType::kFloat32}, 7, false, {}).ok());
  EXPECT_LT(gpu_.kept_bytes(), large);
  ASSERT_TRUE(gpu_.network(plan_of(6), {5, DataType::kFloat32}, 7, false, {}).ok());
  ASSERT_TRUE(gpu_.network(plan_of(6), {5, DataType::kFloat32}, 7, true, {}).ok());
}

// Layouts, which decide whether weights fit, are equal here.
TEST_F(TrainingDeviceTest, ANetworkOfAnotherPlanIsMadeAnew) {
  const auto with = [](double dropout, double deviation, const char* gelu) {
    api::ModelConfig model;
    api::LayerConfig wide = linear(4);
    wide.deviation = deviation;
    api::LayerConfig drop = simple(api::LayerType::kDropout);
    drop.rate = dropout;
    model.layers = {wide, simple(api::LayerType::kGelu), drop, linear(4)};
    model.layers[1].approximate = *api::from_string<api::GeluApproximation>(gelu);
    return *plan_network(model, {2, 2, 1}, 4);
  };
  const kernels::PlanOptions options{5, DataType::kFloat32};
  ASSERT_TRUE(cpu_.network(with(0.5, 0.1, "none"), options, 7, false, {}).ok());
  ASSERT_TRUE(cpu_.network(with(0.5, 0.1, "none"), options, 7, false, {}).ok());
  EXPECT_TRUE(cpu_.reused_network());
  for (const NetworkPlan& other :
       {with(0.25, 0.1, "none"), with(0.5, 0.2, "none"), with(0.5, 0.1, "tanh")}) {
    ASSERT_TRUE(cpu_.network(other, options, 7, false, {}).ok());
    EXPECT_FALSE(cpu_.reused_network());
  }
}

TEST_F(TrainingDeviceTest, SamplesAreUploadedOnce) {
  const ImageSet images = SyntheticImages(40).set();
  const ImageSet others = SyntheticImages(20).set();
  const auto first = gpu_.hold(images);
  ASSERT_TRUE(first.ok());
  const std::int64_t free = *gpu_.backend().free_memory();
  EXPECT_GT(gpu_.kept_bytes(), 0);
  const auto again = gpu_.hold(images);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->pixels, first->pixels);
  EXPECT_EQ(again->labels, first->labels);
  EXPECT_EQ(*gpu_.backend().free_memory(), free);

  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(others.pixel_bytes()));
  const auto replaced = gpu_.hold(others);
  ASSERT_TRUE(replaced.ok());
  gpu_.backend().download(replaced->pixels, pixels.data(), others.pixel_bytes());
  EXPECT_TRUE(std::ranges::equal(
      pixels, std::span(static_cast<const std::uint8_t*>(others.samples().pixels), pixels.size())));
  gpu_.release_samples();
  EXPECT_EQ(gpu_.kept_bytes(), 0);
}

TEST_F(TrainingDeviceTest, ASetInThePlaceOfAFreedOneIsUploaded) {
  std::optional<ImageSet> images = SyntheticImages(20).set();
  ASSERT_TRUE(gpu_.hold(*images).ok());
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(images->pixel_bytes()), 9);
  images.emplace(images->shape(), Bytes::copy_of(pixels),
                 Bytes::copy_of(std::vector<std::uint8_t>(20, 1)));
  const auto held = gpu_.hold(*images);
  ASSERT_TRUE(held.ok());
  gpu_.backend().download(held->pixels, pixels.data(), images->pixel_bytes());
  EXPECT_THAT(pixels, testing::Each(9));
}

}  // namespace
}  // namespace fettle::trainer
