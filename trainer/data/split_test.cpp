#include "trainer/data/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace fettle::trainer {
namespace {

api::DataConfig sizes(std::int64_t train, std::int64_t validation, std::int64_t seed = 0) {
  api::DataConfig data;
  data.train_images = "images";
  data.train_samples = train;
  data.validation_samples = validation;
  data.split_seed = seed;
  return data;
}

TEST(KeyedPermutation, HoldsEveryPositionOnceAndDependsOnTheKeyAlone) {
  Indices order = keyed_permutation(1000, 7);
  EXPECT_EQ(order, keyed_permutation(1000, 7));
  EXPECT_NE(order, keyed_permutation(1000, 8));
  std::sort(order.begin(), order.end());
  Indices expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(Split, TrainingAndValidationAreDisjoint) {
  const auto split = split_samples(100, sizes(70, 30));
  ASSERT_TRUE(split.ok());
  Indices all = split->train;
  all.insert(all.end(), split->validation.begin(), split->validation.end());
  std::sort(all.begin(), all.end());
  Indices expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(Split, TheHeldOutSamplesDoNotDependOnHowManyAreTrainedOn) {
  EXPECT_EQ(split_samples(100, sizes(10, 30))->validation,
            split_samples(100, sizes(70, 30))->validation);
  EXPECT_NE(split_samples(100, sizes(70, 30, 1))->validation,
            split_samples(100, sizes(70, 30, 2))->validation);
}

TEST(Split, HoldsOutASixthUnlessToldOtherwise) {
  const auto split = split_samples(600, sizes(0, 0));
  EXPECT_EQ(split->validation.size(), 100U);
  EXPECT_EQ(split->train.size(), 500U);
}

TEST(Split, RefusesMoreSamplesThanThereAre) {
  const auto split = split_samples(100, sizes(90, 11));
  ASSERT_FALSE(split.ok());
  EXPECT_THAT(split.error().message,
              testing::HasSubstr("images holds 100 samples, too few for trainSamples 90"));
  EXPECT_FALSE(split_samples(100, sizes(0, 100)).ok());
}

TEST(EpochOrder, VisitsTheSameSamplesInAnotherOrderEachEpoch) {
  const Indices train = {5, 9, 2, 7, 11, 4, 1, 0};
  const Indices first = epoch_order(train, 3, 0);
  const Indices second = epoch_order(train, 3, 1);
  EXPECT_THAT(first, testing::UnorderedElementsAreArray(train));
  EXPECT_THAT(second, testing::UnorderedElementsAreArray(train));
  EXPECT_NE(first, second);
  EXPECT_NE(first, epoch_order(train, 4, 0));
  EXPECT_EQ(first, epoch_order(train, 3, 0));
}

}  // namespace
}  // namespace fettle::trainer
