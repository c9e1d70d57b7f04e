#include "trainer/step/parameter_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {
namespace {

using testing::ElementsAre;

// Weights: 0 to 64, 64 to 96, 96 to 128; biases: 128 to 144, 144 to 160, 160 to 176.
NetworkPlan plan_of(std::int64_t freeze) {
  api::ModelConfig model;
  model.layers = {linear(16), linear(2), linear(16)};
  model.freeze = freeze;
  auto plan = plan_network(model, {2, 2, 1}, 16);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

api::TrainingConfig config_of(double layer_decay, api::OptimizerKind optimizer = {}) {
  api::TrainingConfig config;
  config.layer_decay = layer_decay;
  config.optimizer = optimizer;
  return config;
}

TEST(ParameterGroups, WeightDecaySeparatesWeightsFromTheRest) {
  EXPECT_THAT(parameter_groups(plan_of(0), config_of(1)),
              ElementsAre(ParameterGroup{{0, 128}, true}, ParameterGroup{{128, 176}, false}));
}

TEST(ParameterGroups, FrozenLayersBelongToNone) {
  EXPECT_THAT(parameter_groups(plan_of(2), config_of(1)),
              ElementsAre(ParameterGroup{{96, 128}, true}, ParameterGroup{{160, 176}, false}));
}

TEST(ParameterGroups, LayerDecaySlowsEarlierLayers) {
  EXPECT_THAT(
      parameter_groups(plan_of(1), config_of(0.5)),
      ElementsAre(ParameterGroup{{64, 96}, true, 0.5}, ParameterGroup{{96, 128}, true, 1},
                  ParameterGroup{{144, 146}, false, 0.5}, ParameterGroup{{160, 176}, false, 1}));
}

TEST(ParameterGroups, LambHasAGroupForEachTensor) {
  EXPECT_EQ(parameter_groups(plan_of(0), config_of(1, api::OptimizerKind::kLamb)).size(), 6U);
}

}  // namespace
}  // namespace fettle::trainer
