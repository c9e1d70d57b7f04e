#include "kernels/optimizer/step.h"

#include <gtest/gtest.h>

#include <limits>

namespace fettle::kernels {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr StepSettings kFp32;
constexpr StepSettings kFp16{.scales_loss = true, .batch_divisor = 4};

// Takes a step of four samples. `squares`: of their summed, scaled gradients.
void take_step(const StepSettings& settings, StepControl& control, double squares, float loss = 2) {
  control.squares = squares;
  decide(settings, {.loss = loss, .correct = 1, .samples = 4}, control);
}

void take_good_steps(int count, StepControl& control) {
  for (int step = 0; step < count; ++step) take_step(kFp16, control, 1);
}

TEST(Step, IsAppliedToTheMeanOverItsSamples) {
  StepControl control = first_control(kFp32);
  take_step(kFp32, control, 9);
  EXPECT_EQ(control.apply, 1);
  EXPECT_EQ(control.skipped, 0);
  EXPECT_EQ(control.updates, 1);
  EXPECT_EQ(control.gradient_scale, 0.25F);
  EXPECT_EQ(control.dlogits_scale, 1);
  EXPECT_EQ(control.sums.loss, 2);
  EXPECT_EQ(control.sums.samples, 4);
}

TEST(Step, UndoesTheScaleOfTheLoss) {
  StepControl control = first_control(kFp16);
  EXPECT_EQ(control.dlogits_scale, 65536.0F / 4);
  take_step(kFp16, control, 9);
  EXPECT_EQ(control.gradient_scale, 1.0F / 65536);  // 1 / (4 samples x 65536 / 4)
  EXPECT_EQ(control.dlogits_scale, 65536.0F / 4);
}

TEST(Step, UndoesTheScaleItsGradientsHadAlsoWhereTheNextIsAnother) {
  StepControl control = first_control(kFp16);
  take_good_steps(2000, control);
  EXPECT_EQ(control.loss_scale.scale, 131072);
  EXPECT_EQ(control.gradient_scale, 1.0F / 65536);
  EXPECT_EQ(control.dlogits_scale, 131072.0F / 4);
}

TEST(Step, ClipsGradientsThatAreLongerThanAllowed) {
  const StepSettings clipping{.clip_norm = 0.5};
  StepControl control = first_control(clipping);
  take_step(clipping, control, 64);  // the mean's norm is 8 / 4
  EXPECT_FLOAT_EQ(control.gradient_scale, 0.25F * 0.5F / 2.000001F);
  take_step(clipping, control, 1);
  EXPECT_EQ(control.gradient_scale, 0.25F);
}

TEST(Step, ChangesNothingWhereTheLossOrTheGradientsAreNotFinite) {
  struct Case {
    double squares;
    StepSums sums;
  };
  for (const Case& c :
       {Case{1, {.loss = kNaN, .samples = 4}}, Case{1, {.loss = 2, .samples = 4, .not_finite = 1}},
        Case{kInfinity, {.loss = 2, .samples = 4}},
        Case{double{kNaN}, {.loss = 2, .samples = 4}}}) {
    StepControl control = first_control(kFp32);
    take_step(kFp32, control, 1);
    control.squares = c.squares;
    decide(kFp32, c.sums, control);
    EXPECT_EQ(control.apply, 0);
    EXPECT_EQ(control.skipped, 0);
    EXPECT_EQ(control.updates, 1);
    EXPECT_EQ(control.loss_scale, LossScale{});
  }
}

TEST(Step, GoesOnAfterOneThatWasNotApplied) {
  StepControl control = first_control(kFp16);
  take_step(kFp16, control, kInfinity);
  EXPECT_EQ(control.skipped, 1);
  take_step(kFp16, control, 1);
  EXPECT_EQ(control.apply, 1);
  EXPECT_EQ(control.skipped, 0);
  EXPECT_EQ(control.updates, 1);
}

// The host enqueued these steps before it knew of a skip.
TEST(Step, TakesTheLearningRateOfAsManyStepsAsWereApplied) {
  StepControl control = first_control(kFp16);
  control.input.learning_rates[0] = 3;
  control.input.learning_rates[1] = 2;
  control.input.learning_rates[2] = 1;
  for (const float rate : {3.0F, 2.0F, 1.0F}) {
    take_step(kFp16, control, kInfinity);
    EXPECT_EQ(control.learning_rate, rate);
  }
  control.input.known_skips = 3;
  take_step(kFp16, control, 1);
  EXPECT_EQ(control.learning_rate, 3);
}

// Holds even if the sums look sound.
TEST(Step, IsUndoneIfItsSumsWereAborted) {
  std::int32_t given_up = 0;
  StepSettings settings = kFp16;
  settings.given_up = &given_up;
  StepControl control = first_control(settings);
  take_step(settings, control, 9);
  EXPECT_EQ(control.lost, 0);
  given_up = 1;
  for (const double squares : {9.0, kInfinity}) {
    take_step(settings, control, squares, 5);
    EXPECT_EQ(control.lost, 1);
    EXPECT_EQ(control.apply, 0);
    EXPECT_EQ(control.skipped, 0);
    EXPECT_EQ(control.updates, 1);
    EXPECT_EQ(control.loss_scale, (LossScale{.good_steps = 1}));
    EXPECT_EQ(control.dlogits_scale, 65536.0F / 4);
  }
}

TEST(LossScale, GrowsAfterTwoThousandGoodStepsInARow) {
  StepControl control = first_control(kFp16);
  take_good_steps(1999, control);
  EXPECT_EQ(control.loss_scale.scale, 65536);
  take_good_steps(1, control);
  EXPECT_EQ(control.loss_scale.scale, 131072);
  take_good_steps(2000, control);
  EXPECT_EQ(control.loss_scale.scale, 262144);
}

TEST(LossScale, ASkippedStepHalvesItAndStartsTheCountAnew) {
  StepControl control = first_control(kFp16);
  take_good_steps(1999, control);
  take_step(kFp16, control, 1, kNaN);
  EXPECT_EQ(control.skipped, 1);
  EXPECT_EQ(control.loss_scale.scale, 32768);
  EXPECT_EQ(control.dlogits_scale, 32768.0F / 4);
  EXPECT_EQ(control.loss_scale.skipped_steps, 1);
  take_good_steps(1, control);
  EXPECT_EQ(control.loss_scale.scale, 32768);
}

TEST(LossScale, GivesUpAtTheSmallest) {
  StepControl control = first_control(kFp16);
  for (int step = 0; step < 16; ++step) {
    take_step(kFp16, control, kInfinity);
    EXPECT_EQ(control.skipped, 1);
  }
  EXPECT_EQ(control.loss_scale.scale, 1);
  take_step(kFp16, control, kInfinity);
  EXPECT_EQ(control.apply, 0);
  EXPECT_EQ(control.skipped, 0);
  EXPECT_EQ(control.loss_scale.scale, 1);
  EXPECT_EQ(control.loss_scale.skipped_steps, 16);
}

TEST(LossScale, StaysFinite) {
  StepControl control = first_control(kFp16);
  control.loss_scale.scale = 0x1p126;
  take_good_steps(6000, control);
  EXPECT_EQ(control.loss_scale.scale, 0x1p127);
  EXPECT_EQ(control.dlogits_scale, 0x1p125F);
}

TEST(StepSums, HoldALossAndRequests) {
  StepSums sums;
  add_sums({.loss = 1.5, .correct = 3, .samples = 4}, {.stop = 1}, sums);
  add_sums({.loss = 0.5, .correct = 1, .samples = 2}, {.regroup = 1}, sums);
  EXPECT_EQ(sums.loss, 2);
  EXPECT_EQ(sums.correct, 4);
  EXPECT_EQ(sums.samples, 6);
  EXPECT_EQ(sums.not_finite, 0);
  EXPECT_EQ(sums.stop, 1);
  EXPECT_EQ(sums.regroup, 1);
}

TEST(StepSums, CountTheWorkersWhoseLossIsNotFinite) {
  StepSums sums;
  add_sums({.loss = kInfinity, .samples = 4}, {}, sums);
  EXPECT_EQ(sums.not_finite, 1);
}

TEST(RunningStatistics, AreTheMeanOverTheStepOrUnchanged) {
  StepControl control = first_control(kFp32);
  take_step(kFp32, control, 1);
  EXPECT_EQ(statistic_after(control, 7, 10), 2.5F);
  take_step(kFp32, control, kInfinity);
  EXPECT_EQ(statistic_after(control, 7, 10), 7);
}

}  // namespace
}  // namespace fettle::kernels
