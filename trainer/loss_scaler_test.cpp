#include "trainer/loss_scaler.h"

#include <gtest/gtest.h>

namespace fettle::trainer {
namespace {

TEST(LossScaler, GrowsAfterTwoThousandGoodStepsInARow) {
  LossScaler scaler;
  for (int step = 0; step < 1999; ++step) scaler.count_good_step();
  EXPECT_EQ(scaler.scale, 65536);
  scaler.count_good_step();
  EXPECT_EQ(scaler.scale, 131072);
  for (int step = 0; step < 2000; ++step) scaler.count_good_step();
  EXPECT_EQ(scaler.scale, 262144);
}

TEST(LossScaler, ASkippedStepHalvesTheScaleAndStartsTheCountAnew) {
  LossScaler scaler;
  for (int step = 0; step < 1999; ++step) scaler.count_good_step();
  EXPECT_TRUE(scaler.skip_step());
  EXPECT_EQ(scaler.scale, 32768);
  EXPECT_EQ(scaler.skipped_steps, 1);
  scaler.count_good_step();
  EXPECT_EQ(scaler.scale, 32768);
}

TEST(LossScaler, GivesUpAtTheSmallestScale) {
  LossScaler scaler;
  for (int step = 0; step < 16; ++step) EXPECT_TRUE(scaler.skip_step());
  EXPECT_EQ(scaler.scale, 1);
  EXPECT_FALSE(scaler.skip_step());
  EXPECT_EQ(scaler.scale, 1);
  EXPECT_EQ(scaler.skipped_steps, 16);
}

TEST(LossScaler, StaysFinite) {
  LossScaler scaler;
  scaler.scale = 0x1p126;
  for (int step = 0; step < 6000; ++step) scaler.count_good_step();
  EXPECT_EQ(scaler.scale, 0x1p127);
}

}  // namespace
}  // namespace fettle::trainer
