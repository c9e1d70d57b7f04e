#include "trainer/model/wide_residuals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/trainer/trainer_config.h"
#include "base/philox.h"
#include "kernels/aligned.h"
#include "trainer/checkpoint/identity.h"
#include "trainer/model/gpt.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/network.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr SampleFormat kText{{8, 1, 1}, 11, true, ""};

api::TrainerConfig gpt_of(std::int64_t layers, api::Precision precision, bool wide) {
  api::TrainerConfig config;
  config.model.gpt = {.layers = layers, .heads = 2, .width = 16};
  config.training.precision = precision;
  config.training.residual_in_fp32 = wide;
  return config;
}

// "layerNorm32": the layer's output is fp32.
std::vector<std::string> layers_of(const NetworkPlan& plan) {
  std::vector<std::string> names;
  for (const LayerPlan& layer : plan.layers) {
    const bool cast = layer.type == LayerType::kCast;
    names.push_back((cast ? "cast" : std::string(api::to_string(layer.type))) +
                    (layer.wide ? "32" : ""));
  }
  return names;
}

// The types of a GPT's tensors under torch.autocast(bfloat16).
TEST(WideResiduals, TheStreamOfAGptIsFp32AndItsMatricesAreNot) {
  const NetworkPlan plan = *plan_network(gpt_of(1, api::Precision::kBf16, true), kText);
  EXPECT_THAT(layers_of(plan),
              ElementsAre("embedding32", "layerNorm32", "cast", "linear", "attention", "linear",
                          "cast32", "add32", "layerNorm32", "cast", "linear", "gelu", "linear",
                          "cast32", "add32", "layerNorm32", "cast", "head"));
  EXPECT_EQ(plan.layers[7].source, 6);
  EXPECT_EQ(plan.layers[7].shortcut, 0);
  EXPECT_EQ(plan.layers[2].name, plan.layers[1].name + " to 16 bits");
}

TEST(WideResiduals, ParametersAndLayoutStayAsTheyAre) {
  const NetworkPlan narrow = *plan_network(gpt_of(2, api::Precision::kBf16, false), kText);
  const NetworkPlan wide = *plan_network(gpt_of(2, api::Precision::kBf16, true), kText);
  EXPECT_EQ(wide.parameters, narrow.parameters);
  EXPECT_EQ(wide.trained(), narrow.trained());
  EXPECT_EQ(wide.training_flops(), narrow.training_flops());
  EXPECT_NE(wide.layers.size(), narrow.layers.size());
}

TEST(WideResiduals, InFp32ThereIsNothingToWiden) {
  const NetworkPlan plan = *plan_network(gpt_of(1, api::Precision::kFp32, true), kText);
  EXPECT_EQ(layers_of(plan),
            layers_of(*plan_network(gpt_of(1, api::Precision::kFp32, false), kText)));
}

TEST(WideResiduals, AreRefusedWhereNoStreamBegins) {
  api::TrainerConfig config;
  config.model.layers = {linear(4)};
  config.training.precision = api::Precision::kBf16;
  config.training.residual_in_fp32 = true;
  const auto refused = plan_network(config, {{8, 8, 1}, 4, false, ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              HasSubstr("training.residualInFp32 is for models that begin"));
}

// Logits of a deep GPT on random tokens.
std::vector<float> logits_of(api::Precision precision, bool wide) {
  constexpr std::int64_t kSamples = 4;
  const NetworkPlan plan = *plan_network(gpt_of(12, precision, wide), kText);
  const bool is_16_bit = precision == api::Precision::kBf16;
  const auto type = is_16_bit ? kernels::DataType::kBFloat16 : kernels::DataType::kFloat32;
  const auto backend = *kernels::make_backend("reference", 1);
  const auto network = *Network::create(plan, *backend, {kSamples, type}, 3);
  kernels::AlignedArray<std::int32_t> tokens(kSamples * kText.input.size());
  Random random(5);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random.below(11));
  const kernels::ConstBuffer found = network->forward({false, kSamples}, tokens.data());
  const std::int64_t count = kSamples * kText.input.size() * kText.classes;
  std::vector<float> logits(static_cast<std::size_t>(count));
  if (is_16_bit) {
    backend->widen(type, count, static_cast<const std::uint16_t*>(found), logits.data());
  } else {
    backend->copy(found, logits.data(), count * std::int64_t{sizeof(float)});
  }
  return logits;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares / static_cast<double>(a.size()));
}

// The option's purpose: without it each block rounds the whole stream.
TEST(WideResiduals, AreNearerToFp32) {
  const std::vector<float> exact = logits_of(api::Precision::kFp32, false);
  const double narrow = distance(logits_of(api::Precision::kBf16, false), exact);
  const double wide = distance(logits_of(api::Precision::kBf16, true), exact);
  EXPECT_GT(wide, 0);
  EXPECT_LT(wide, 0.7 * narrow);
}

}  // namespace
}  // namespace fettle::trainer
