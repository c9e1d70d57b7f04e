#include "trainer/model/resnet.h"

#include <gtest/gtest.h>

#include <utility>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {
namespace {

NetworkPlan plan(std::vector<api::LayerConfig> layers, std::int64_t side, std::int64_t classes) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  auto made = plan_network(model, {side, side, 3}, classes);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return *made;
}

// Parameters of torchvision.models.resnet18() and resnet50().
TEST(ResNet, HasAsManyParametersAsTorchvisions) {
  EXPECT_EQ(plan(resnet18(1000, ResNetStem::kLarge), 224, 1000).trained(), 11'689'512);
  EXPECT_EQ(plan(resnet50(1000, ResNetStem::kLarge), 224, 1000).trained(), 25'557'032);
}

TEST(ResNet, TakesSmallImages) {
  const NetworkPlan small = plan(resnet18(10, ResNetStem::kSmall), 32, 10);
  EXPECT_EQ(small.layers.front().output, (kernels::ImageShape{32, 32, 64}));
  EXPECT_EQ(small.trained(), 11'173'962);  // the usual count of "ResNet-18 for CIFAR"
  EXPECT_EQ(plan(resnet50(10, ResNetStem::kSmall), 32, 10).trained(), 23'520'842);
  EXPECT_EQ(plan(resnet9(10), 32, 10).trained(), 6'573'130);
}

TEST(ResNet, NeedsTheKnownNumberOfMultiplications) {
  const auto multiply_adds = [](const NetworkPlan& network) {
    double total = 0;
    for (const LayerPlan& layer : network.layers) total += layer.multiply_adds;
    return total;
  };
  EXPECT_NEAR(multiply_adds(plan(resnet50(1000, ResNetStem::kLarge), 224, 1000)), 4.09e9, 0.01e9);
  EXPECT_NEAR(multiply_adds(plan(resnet9(10), 32, 10)), 379e6, 1e6);
}

}  // namespace
}  // namespace fettle::trainer
