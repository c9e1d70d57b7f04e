#include "trainer/model/model_flops.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "trainer/model/gpt.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/resnet.h"

namespace fettle::trainer {
namespace {

NetworkPlan plan_of(std::vector<api::LayerConfig> layers, const SampleFormat& format) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  auto made = plan_network(model, format);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return *made;
}

TEST(ModelFlops, CountEveryPassOverEveryLayer) {
  const auto relu = simple(api::LayerType::kRelu);
  const NetworkPlan mlp =
      plan_of({linear(512), relu, linear(512), relu, linear(10)}, {{28, 28, 1}, 10, false, ""});
  EXPECT_EQ(model_flops(mlp), 6.0 * (784 * 512 + 512 * 512 + 512 * 10));
  EXPECT_EQ(inference_flops(mlp), 2.0 * (784 * 512 + 512 * 512 + 512 * 10));
  EXPECT_EQ(model_flops(mlp) - mlp.training_flops(), 2.0 * 784 * 512)
      << "no layer needs the gradient by the images, but papers count it";
}

// torchvision and fvcore report 4.09 and 4.1 "GFLOPs", counting a multiply-add as one.
TEST(ModelFlops, AreThoseThatAreKnownOfResNet50) {
  const NetworkPlan plan =
      plan_of(resnet50(1000, ResNetStem::kLarge), {{224, 224, 3}, 1000, false, ""});
  EXPECT_NEAR(model_flops(plan) / 6, 4.1e9, 0.02e9);
}

// 6 N + 12 L H Q T for each token, N without positions (nanoGPT's estimate_mfu). N includes biases
// and norms, a thousandth of it, which have no products.
TEST(ModelFlops, AreThePaLMPapersOfGpt2) {
  const SampleFormat text{{1024, 1, 1}, 50304, true, ""};
  const NetworkPlan plan = plan_of(gpt({.layers = 12, .heads = 12, .width = 768}), text);
  const double parameters = static_cast<double>(plan.trained()) - 1024 * 768;
  EXPECT_NEAR(parameters, 124e6, 1e6);
  const double a_token = 6 * parameters + 12.0 * 12 * 12 * 64 * 1024;
  EXPECT_NEAR(model_flops(plan) / 1024, a_token, 1e-3 * a_token);
  EXPECT_LT(model_flops(plan) / 1024, a_token);
}

}  // namespace
}  // namespace fettle::trainer
