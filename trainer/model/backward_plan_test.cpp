#include "trainer/model/backward_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::ElementsAre;

BackwardPlan backward(std::vector<api::LayerConfig> layers,
                      const std::vector<std::int64_t>& cuts = {}) {
  api::ModelConfig model;
  model.layers = std::move(layers);
  const auto plan = plan_network(model, {6, 6, 2}, 3);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan_backward(*plan, cuts);
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

TEST(BackwardPlan, StopsAtFrozenLayers) {
  api::ModelConfig model;
  model.layers = {conv(2),
                  simple(LayerType::kResidual),
                  conv(2),
                  simple(LayerType::kBatchNorm),
                  simple(LayerType::kShortcut),
                  conv(2),
                  simple(LayerType::kAdd),
                  linear(3)};
  // 0 conv, [1 conv, 2 batchNorm | 3 conv], 4 add, 5 linear
  model.freeze = 3;  // the first two convolutions
  EXPECT_THAT(plan_backward(*plan_network(model, {6, 6, 2}, 3)).steps,
              ElementsAre(BackwardStep{5, 0, 1}, BackwardStep{4, 1}, BackwardStep{3, 1},
                          BackwardStep{2, 1}));
  model.freeze = 7;
  EXPECT_THAT(plan_backward(*plan_network(model, {6, 6, 2}, 3)).steps,
              ElementsAre(BackwardStep{5, 0, kNoSlot}));
}

TEST(BackwardPlan, TheFirstLayersInputHasNoGradient) {
  api::ModelConfig model;
  model.layers = {simple(LayerType::kRelu), conv(2), linear(4), simple(LayerType::kRelu),
                  linear(3)};
  EXPECT_EQ(needed_input_gradients(*plan_network(model, {6, 6, 2}, 3)),
            (std::vector<bool>{false, false, true, true}))
      << "relu, conv, linear with its relu, linear";
}

TEST(BackwardPlan, TheInputOfABlockGetsASum) {
  // 0 conv, [1 conv], 2 add, 3 linear
  const BackwardPlan plan = backward(
      {conv(2), simple(LayerType::kResidual), conv(2), simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps, ElementsAre(BackwardStep{3, 0, 1},     // linear
                                      BackwardStep{2, 1},        // add: conv 0 and 1 share its slot
                                      BackwardStep{1, 1, 0, 1},  // added to that slot
                                      BackwardStep{0, 1}));
  EXPECT_EQ(plan.slots, 2);
}

// The mask of conv 1 would change conv 0's gradient, too.
TEST(BackwardPlan, NothingIsSharedWithAFusedRelu) {
  const BackwardPlan plan =
      backward({conv(2), simple(LayerType::kResidual), conv(2), simple(LayerType::kRelu),
                simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps,
              ElementsAre(BackwardStep{3, 0, 1}, BackwardStep{2, 1, 0},  // add: a copy for conv 0
                          BackwardStep{1, 1, 2, 0}, BackwardStep{0, 0}));
}

// The inner sum (2) would be added to the gradient of conv 0 while that is still its own.
TEST(BackwardPlan, NothingIsSharedWithAnotherSum) {
  const BackwardPlan plan =
      backward({conv(2), simple(LayerType::kResidual), simple(LayerType::kResidual), conv(2),
                simple(LayerType::kAdd), simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps, ElementsAre(BackwardStep{4, 0, 1}, BackwardStep{3, 1, 0},
                                      BackwardStep{2, 1, 0, kNoSlot, true},
                                      BackwardStep{1, 1, 2, 0}, BackwardStep{0, 0}));
}

// The shortcut's conv (2) steps back first of the block's two ends, and leaves the slot unchanged.
TEST(BackwardPlan, AShortcutOfItsOwnSharesWithTheBlock) {
  const BackwardPlan plan =
      backward({conv(2), simple(LayerType::kResidual), conv(4), simple(LayerType::kRelu),
                simple(LayerType::kShortcut), conv(4), simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps,
              ElementsAre(BackwardStep{4, 0, 1}, BackwardStep{3, 1}, BackwardStep{2, 1, 0},
                          BackwardStep{1, 1, 2, 0}, BackwardStep{0, 0}));
}

TEST(BackwardPlan, ANormAddsToTheSumItself) {
  // 0 linear, [1 norm, 2 linear], 3 add, 4 linear
  const BackwardPlan plan =
      backward({linear(3), simple(LayerType::kResidual), simple(LayerType::kLayerNorm), linear(3),
                simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps,
              ElementsAre(BackwardStep{4, 0, 1}, BackwardStep{3, 1}, BackwardStep{2, 1, 0},
                          BackwardStep{1, 0, 1, kNoSlot, true}, BackwardStep{0, 1}));
}

// A norm that is the whole block has the sum's gradient as its own, and cannot add to its input.
TEST(BackwardPlan, ANormDoesNotAddToItsOwnGradient) {
  const BackwardPlan plan =
      backward({linear(3), simple(LayerType::kResidual), simple(LayerType::kLayerNorm),
                simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps, ElementsAre(BackwardStep{3, 0, 1}, BackwardStep{2, 1},
                                      BackwardStep{1, 1, 0, 1}, BackwardStep{0, 1}));
}

// 0 conv, [1 conv, 2 norm], 3 add, [4 conv, 5 norm], 6 add, 7 linear
std::vector<api::LayerConfig> two_blocks() {
  const auto residual = simple(LayerType::kResidual);
  const auto norm = simple(LayerType::kBatchNorm);
  const auto add = simple(LayerType::kAdd);
  return {conv(2), residual, conv(2), norm, add, residual, conv(2), norm, add, linear(3)};
}

// Conv 4 gives the second part of the gradient of 3, which norm 2 adds to the first; norm 2 writes
// its own gradient over it. The shortcut of each block takes over its sum's slot.
TEST(BackwardPlan, ABatchNormAtTheEndOfABlockAddsTheLastPart) {
  const BackwardPlan plan = backward(two_blocks());
  EXPECT_THAT(
      plan.steps,
      ElementsAre(BackwardStep{7, 0, 1},  //
                  BackwardStep{.layer = 5, .dy = 1, .dx = 0, .ends_block = true},
                  BackwardStep{4, 0, 2},
                  BackwardStep{.layer = 2, .dy = 1, .dx = 2, .ends_block = true, .other = 2},
                  BackwardStep{1, 2, 0, 1}, BackwardStep{0, 1}));
  EXPECT_EQ(plan.slots, 3);
}

// The layers before 3 run forward again between conv 4 and norm 2.
TEST(BackwardPlan, TwoPartsAreNotHeldOverACut) {
  const BackwardPlan plan = backward(two_blocks(), {3});
  EXPECT_EQ(plan.steps[2], (BackwardStep{4, 0, 2, 1}));
  EXPECT_EQ(plan.steps[3].other, kNoSlot);
}

// The gradient by add 3 also goes to conv 0, which already has that by add 5.
TEST(BackwardPlan, ABlockWithinABlockEndsInTwoSteps) {
  const auto residual = simple(LayerType::kResidual);
  const auto add = simple(LayerType::kAdd);
  // 0 conv, [[1 conv, 2 norm], 3 add, 4 conv], 5 add, 6 linear
  const BackwardPlan plan = backward({conv(2), residual, residual, conv(2),
                                      simple(LayerType::kBatchNorm), add, conv(2), add, linear(3)});
  EXPECT_THAT(plan.steps,
              ElementsAre(BackwardStep{6, 0, 1}, BackwardStep{5, 1}, BackwardStep{4, 1, 0},
                          BackwardStep{3, 0, 1, kNoSlot, true}, BackwardStep{2, 0, 2},
                          BackwardStep{1, 2, 0, 1}, BackwardStep{0, 1}));
}

TEST(BackwardPlan, GoesPastAGeluBetweenLinearLayers) {
  const BackwardPlan plan = backward({linear(5), simple(LayerType::kGelu), linear(3)});
  EXPECT_THAT(plan.steps, ElementsAre(BackwardStep{2, 0, 1}, BackwardStep{0, 1}));
}

TEST(BackwardPlan, ABlockOnTheImagesNeedsNoSum) {
  const BackwardPlan plan =
      backward({simple(LayerType::kResidual), conv(2), simple(LayerType::kAdd), linear(3)});
  EXPECT_THAT(plan.steps,
              ElementsAre(BackwardStep{2, 0, 1}, BackwardStep{1, 1}, BackwardStep{0, 1, kNoSlot}));
}

}  // namespace
}  // namespace fettle::trainer
