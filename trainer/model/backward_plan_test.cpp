#include "trainer/model/backward_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::ElementsAre;

BackwardPlan backward(std::vector<api::LayerConfig> layers) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  const auto plan = plan_network(model, {6, 6, 2}, 3);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan_backward(*plan);
}

TEST(BackwardPlan, AChainAlternatesBetweenTwoSlots) {
  const BackwardPlan plan = backward({linear(5), linear(4), linear(3)});
  EXPECT_EQ(plan.slots, 2);
  EXPECT_THAT(plan.steps, ElementsAre(BackwardStep{2, 0, 1}, BackwardStep{1, 1, 0},
                                      BackwardStep{0, 0, kNoSlot}));
}

TEST(BackwardPlan, StopsWhereNothingIsTrainedBefore) {
  const BackwardPlan plan = backward({simple(LayerType::kRelu), dropout(0.1), linear(3)});
  EXPECT_THAT(plan.steps, ElementsAre(BackwardStep{2, 0, kNoSlot}));
}

TEST(BackwardPlan, TheInputOfABlockGetsASum) {
  // 0 conv, [1 conv], 2 add, 3 linear
  const BackwardPlan plan = backward(
      {conv(2), simple(LayerType::kResidual), conv(2), simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps,
              ElementsAre(BackwardStep{3, 0, 1},                    // linear
                          BackwardStep{2, 1, kNoSlot, kNoSlot, 0},  // add: a copy for conv 0
                          BackwardStep{1, 1, 2, 0},                 // added to that
                          BackwardStep{0, 0, kNoSlot}));
  EXPECT_EQ(plan.slots, 3);
}

TEST(BackwardPlan, ABlockOnTheImagesNeedsNoSum) {
  const BackwardPlan plan =
      backward({simple(LayerType::kResidual), conv(2), simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps,
              ElementsAre(BackwardStep{2, 0, 1}, BackwardStep{1, 1}, BackwardStep{0, 1, kNoSlot}));
}

}  // namespace
}  // namespace fettle::trainer
