#include "trainer/step/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fettle::trainer {
namespace {

using api::OptimizerKind;
using api::ScalingRule;
using api::ScheduleConfig;
using api::ScheduleKind;

constexpr ScheduleLength kTenEpochs{100, 10};

TEST(LearningRateScale, IsOneForTheReferenceBatchWhateverTheRule) {
  for (const auto rule : {ScalingRule::kAuto, ScalingRule::kLinear, ScalingRule::kSqrt}) {
    EXPECT_EQ(learning_rate_scale(rule, OptimizerKind::kAdam, 128, 128), 1);
  }
}

TEST(LearningRateScale, IsLinearForSgdAndSquareRootForAdamLike) {
  EXPECT_EQ(learning_rate_scale(ScalingRule::kAuto, OptimizerKind::kSgd, 512, 128), 4);
  for (const auto optimizer :
       {OptimizerKind::kAdam, OptimizerKind::kAdamW, OptimizerKind::kRmsprop}) {
    EXPECT_EQ(learning_rate_scale(ScalingRule::kAuto, optimizer, 512, 128), 2);
  }
}

TEST(LearningRateScale, CanBeChosenOrSwitchedOff) {
  EXPECT_EQ(learning_rate_scale(ScalingRule::kNone, OptimizerKind::kSgd, 512, 128), 1);
  EXPECT_EQ(learning_rate_scale(ScalingRule::kSqrt, OptimizerKind::kSgd, 512, 128), 2);
  EXPECT_EQ(learning_rate_scale(ScalingRule::kLinear, OptimizerKind::kAdam, 64, 128), 0.5);
}

TEST(Schedule, ConstantIsOne) {
  EXPECT_EQ(schedule_factor({}, kTenEpochs, 0), 1);
  EXPECT_EQ(schedule_factor({}, kTenEpochs, 999), 1);
}

TEST(Schedule, WarmUpRisesLinearlyAndReachesOneAtItsLastStep) {
  const ScheduleConfig schedule{.warmup_epochs = 0.5};
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 0), 1.0 / 50);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 24), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 49), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 50), 1);
}

TEST(Schedule, StepMultipliesByGammaEverySoManyEpochs) {
  const ScheduleConfig schedule{.name = ScheduleKind::kStep, .step_epochs = 3, .gamma = 0.5};
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 299), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 300), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 900), 0.125);
}

TEST(Schedule, CosineFallsFromOneThroughTheMiddleToTheFinalFraction) {
  ScheduleConfig schedule{.name = ScheduleKind::kCosine, .warmup_epochs = 2, .final_fraction = 0.1};
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 200), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 600), 0.55);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 1000), 0.1);
}

TEST(Schedule, LinearFallsEvenlyToTheFinalFraction) {
  const ScheduleConfig schedule{.name = ScheduleKind::kLinear, .final_fraction = 0.5};
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 0), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 500), 0.75);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 1000), 0.5);
}

TEST(Schedule, AWarmUpAsLongAsTheTrainingNeverDividesByZero) {
  const ScheduleConfig schedule{.name = ScheduleKind::kCosine, .warmup_epochs = 20};
  EXPECT_DOUBLE_EQ(schedule_factor(schedule, kTenEpochs, 999), 1);
  EXPECT_TRUE(std::isfinite(schedule_factor(schedule, kTenEpochs, 1000)));
}

}  // namespace
}  // namespace fettle::trainer
