// The forest and the shares of variance, on functions of the unit cube with known answers.
#include "search/explain/forest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/philox.h"
#include "search/explain/importance.h"
#include "search/explain/pieces.h"

namespace fettle::explain {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

std::vector<Sample> samples_of(const std::function<double(const Place&)>& function,
                               std::size_t columns, std::size_t count) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < count; ++i) {
    Random random(17, i);
    Sample sample;
    for (std::size_t j = 0; j < columns; ++j) sample.at.push_back(random.uniform());
    sample.value = function(sample.at);
    sample.group = static_cast<std::int64_t>(i);
    samples.push_back(std::move(sample));
  }
  return samples;
}

Forest forest_of(const std::function<double(const Place&)>& function, std::size_t columns,
                 std::size_t count = 500) {
  return Forest::fit(std::vector<Column>(columns), samples_of(function, columns, count), 1);
}

Shares shares_of_function(const std::function<double(const Place&)>& function,
                          std::size_t columns) {
  return shares_of(forest_of(function, columns), Place(columns, kAbsent));
}

TEST(Forest, PredictsTheTrainingPoints) {
  const Forest forest = forest_of([](const Place& at) { return at[0] + 2 * at[1]; }, 2, 1000);
  EXPECT_NEAR(forest.predict({0.5, 0.5}).mean, 1.5, 0.1);
  EXPECT_NEAR(forest.predict({0.1, 0.9}).mean, 1.9, 0.1);
  EXPECT_GT(forest.quality(), 0.95);
}

TEST(Forest, IntegratesOverMissingParameters) {
  const Forest forest = forest_of([](const Place& at) { return at[0] + 2 * at[1]; }, 2, 1000);
  EXPECT_NEAR(forest.predict({0.2, kAbsent}).mean, 1.2, 0.1);
  EXPECT_NEAR(forest.predict({kAbsent, kAbsent}).mean, 1.5, 0.05);
}

TEST(Forest, IsLessSureWhereValuesDiffer) {
  const Forest forest =
      forest_of([](const Place& at) { return at[0] < 0.5 ? 0.0 : std::sin(80 * at[1]); }, 2);
  EXPECT_LT(forest.predict({0.2, 0.5}).deviation, 0.05);
  EXPECT_GT(forest.predict({0.8, 0.5}).deviation, 0.3);
}

TEST(Forest, KnowsThatNoiseCannotBeLearnt) {
  Random noise(5);
  const Forest forest = forest_of([&noise](const Place&) { return noise.uniform(); }, 3);
  EXPECT_LT(forest.quality(), 0.1);
}

TEST(Forest, OfOneSampleIsThatSample) {
  const Forest forest = Forest::fit({{}}, {{{0.5}, 7, 0}}, 1);
  EXPECT_EQ(forest.predict({0.1}).mean, 7);
  EXPECT_EQ(forest.predict({0.1}).deviation, 0);
}

TEST(Forest, IsTheSameAgain) {
  const auto function = [](const Place& at) { return at[0] * at[1]; };
  EXPECT_EQ(forest_of(function, 2).predict({0.3, 0.4}).mean,
            forest_of(function, 2).predict({0.3, 0.4}).mean);
}

TEST(Leaves, ArePartsOfTheCube) {
  const Forest forest = forest_of([](const Place& at) { return at[0] * at[1] + at[2]; }, 3);
  for (const Tree& tree : forest.trees()) {
    double volume = 0;
    double mean = 0;
    for (const Leaf& leaf : tree.leaves(Place(3, kAbsent))) {
      double product = 1;
      for (std::size_t i = 0; i < 3; ++i) product *= leaf.high[i] - leaf.low[i];
      EXPECT_NEAR(product, leaf.volume, 1e-12);
      volume += leaf.volume;
      mean += leaf.volume * leaf.value;
    }
    EXPECT_NEAR(volume, 1, 1e-9);
    EXPECT_NEAR(mean, tree.predict(Place(3, kAbsent)).mean, 1e-9);
  }
}

TEST(Pieces, AgreeWithThePredictionAtEachPlace) {
  const Forest forest = forest_of([](const Place& at) { return at[0] * at[0] + at[1]; }, 2);
  const Tree& tree = forest.trees().front();
  const std::vector<Piece> pieces = pieces_along(tree.leaves({kAbsent, kAbsent}), 0);
  for (const double x : {0.0, 0.13, 0.5, 0.77, 1.0}) {
    EXPECT_NEAR(value_at(pieces, x), tree.predict({x, kAbsent}).mean, 1e-9) << x;
  }
}

// Variances of a sum of uniform numbers: 9 : 1 : 0.
TEST(Shares, OfASumMatchItsTerms) {
  const Shares shares = shares_of_function([](const Place& at) { return 3 * at[0] + at[1]; }, 3);
  EXPECT_NEAR(shares.columns[0].main, 0.9, 0.05);
  EXPECT_NEAR(shares.columns[1].main, 0.1, 0.05);
  EXPECT_NEAR(shares.columns[0].total, shares.columns[0].main, 0.06);
  EXPECT_LT(shares.columns[2].total, 0.02);
}

TEST(Shares, OfAProductAroundZeroBelongToThePair) {
  const Shares shares =
      shares_of_function([](const Place& at) { return (at[0] - 0.5) * (at[1] - 0.5); }, 3);
  EXPECT_LT(shares.columns[0].main, 0.12);
  EXPECT_LT(shares.columns[1].main, 0.12);
  EXPECT_GT(shares.columns[0].total, 0.75);
  EXPECT_GT(shares.columns[1].total, 0.75);
  ASSERT_FALSE(shares.pairs.empty());
  EXPECT_EQ(shares.pairs[0].first, 0U);
  EXPECT_EQ(shares.pairs[0].second, 1U);
  EXPECT_GT(shares.pairs[0].share, 0.65);
}

// In each tree, the variance of a function of two columns is the sum of its parts.
TEST(Shares, OfTwoColumnsAddUp) {
  const Shares shares =
      shares_of_function([](const Place& at) { return at[0] * at[1] + at[0]; }, 2);
  const double sum = shares.columns[0].main + shares.columns[1].main + shares.pairs.at(0).share;
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(shares.columns[0].total, shares.columns[0].main + shares.pairs[0].share, 1e-9);
  EXPECT_NEAR(shares.columns[1].total, shares.columns[1].main + shares.pairs[0].share, 1e-9);
}

TEST(Shares, OfAConstantAreZero) {
  const Shares shares = shares_of_function([](const Place&) { return 3.0; }, 2);
  EXPECT_EQ(shares.columns[0].total, 0);
  EXPECT_TRUE(shares.pairs.empty());
}

TEST(Shares, OfFewPointsFindTheImportantParameters) {
  const Forest forest = forest_of([](const Place& at) { return at[1] * at[1]; }, 4, 16);
  const Shares shares = shares_of(forest, Place(4, kAbsent));
  for (const std::size_t other : {0U, 2U, 3U}) {
    EXPECT_GT(shares.columns[1].total, 2 * shares.columns[other].total);
  }
  EXPECT_GT(shares.columns[1].deviation, 0);
}

TEST(Shares, WithinAPartOfTheCubeAreOfThatPart) {
  const Forest forest =
      forest_of([](const Place& at) { return at[2] > 0.5 ? at[0] : at[1]; }, 3, 1000);
  EXPECT_GT(shares_of(forest, {kAbsent, kAbsent, 0.9}).columns[0].total, 0.9);
  EXPECT_GT(shares_of(forest, {kAbsent, kAbsent, 0.1}).columns[1].total, 0.9);
}

}  // namespace
}  // namespace fettle::explain
