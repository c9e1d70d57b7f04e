// Targets from outcomes: order, scale and outliers.
#include "search/gp/process/rank_transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/maths/normal.h"

namespace fettle::search::gp {
namespace {

std::vector<Ranked> losses(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<Ranked> out;
  for (const double value : values) {
    out.push_back({value, !out.empty() && out.back().loss == value});
  }
  return out;
}

TEST(RankTransform, ANormalSampleStaysAlmostAsItIs) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(7 + 3 * normal_quantile((i + 0.5) / 200));
  const std::vector<double> transformed = rank_transform(losses(values));
  for (int i = 0; i < 200; ++i) {
    EXPECT_NEAR(transformed[static_cast<std::size_t>(i)], normal_quantile((i + 0.5) / 200), 0.02);
  }
}

TEST(RankTransform, TheBadHalfCountsByRankOnly) {
  const std::vector<double> tame = rank_transform(losses({1, 2, 3, 4, 5, 6}));
  const std::vector<double> wild = rank_transform(losses({1, 2, 3, 4, 5e9, 1e300}));
  for (std::size_t i = 0; i < tame.size(); ++i) EXPECT_DOUBLE_EQ(tame[i], wild[i]);
}

TEST(RankTransform, DistancesCountAmongTheGood) {
  const std::vector<double> transformed = rank_transform(losses({0, 1, 1.5, 2, 7, 8, 9, 10}));
  EXPECT_NEAR((transformed[1] - transformed[0]) / (transformed[2] - transformed[1]), 2, 1e-9);
}

TEST(RankTransform, AnOutlierOnTheGoodSideIsReinedIn) {
  const std::vector<double> transformed =
      rank_transform(losses({-1e12, 1, 1.1, 1.2, 1.3, 2, 3, 4, 5, 6}));
  EXPECT_LT(transformed[0], transformed[1]);
  EXPECT_GT(transformed[0], -4);
  EXPECT_GT(transformed[2] - transformed[1], 0.02);
}

TEST(RankTransform, TrialsWithoutAValueComeLastAndTiesAreEqual) {
  std::vector<Ranked> order = losses({3, 1, 1, 2});
  order.push_back({std::nullopt, false});
  order.push_back({std::nullopt, true});
  const std::vector<double> transformed = rank_transform(order);
  EXPECT_EQ(transformed[0], transformed[1]);
  EXPECT_EQ(transformed[4], transformed[5]);
  EXPECT_GT(transformed[4], transformed[3]);
}

TEST(RankTransform, APlateauOfEqualOutcomesIsOneTarget) {
  const std::vector<double> transformed =
      rank_transform(losses({0.1, 0.2, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}));
  for (std::size_t i = 3; i < transformed.size(); ++i) EXPECT_EQ(transformed[2], transformed[i]);
  EXPECT_LT(transformed[0], transformed[1]);
  EXPECT_LT(transformed[1], transformed[2]);
}

TEST(RankTransform, AnythingGivesFiniteTargetsInOrder) {
  const double largest = std::numeric_limits<double>::max();
  for (const std::vector<double>& values : {std::vector<double>{},
                                            {5},
                                            {2, 2, 2},
                                            {-largest, largest},
                                            {-largest, 0, 1, 2, largest},
                                            {0, 5e-324, 1e-300, 1},
                                            {0, 0, 0, 0, 1}}) {
    const std::vector<double> transformed = rank_transform(losses(values));
    ASSERT_EQ(transformed.size(), values.size());
    EXPECT_TRUE(std::is_sorted(transformed.begin(), transformed.end()));
    for (const double target : transformed) EXPECT_TRUE(std::isfinite(target));
  }
  for (const double target : rank_transform({{std::nullopt, false}, {std::nullopt, true}})) {
    EXPECT_EQ(target, 0);
  }
}

TEST(RankTransform, MoreThanHalfMayKeepTheirValues) {
  const std::vector<double> transformed = rank_transform(losses({0, 1, 2, 3, 4, 100}), 5);
  EXPECT_NEAR(transformed[4] - transformed[3], transformed[1] - transformed[0], 1e-12);
  EXPECT_LT(transformed[5] - transformed[4], 3 * (transformed[4] - transformed[3]));
}

TEST(InverseRankTransform, TargetsStandForTheLossesThatTheyWereMadeOf) {
  const std::vector<double> values = {-3, 0, 0, 1, 1.5, 2, 7, 8, 9, 1e300};
  const std::vector<double> targets = rank_transform(losses(values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_DOUBLE_EQ(inverse_rank_transform(targets, values, targets[i]), values[i]);
  }
  EXPECT_DOUBLE_EQ(inverse_rank_transform(targets, values, 0.5 * (targets[6] + targets[7])), 7.5);
  EXPECT_EQ(inverse_rank_transform(targets, values, targets.back() + 5), values.back());
}

TEST(InverseRankTransform, BeyondTheBestItGoesOnAsOverTheBetterHalf) {
  const std::vector<double> values = {0, 1, 2, 3, 50, 60};
  const std::vector<double> targets = rank_transform(losses(values));
  EXPECT_NEAR(inverse_rank_transform(targets, values, 2 * targets[0] - targets[1]), -1, 1e-9);
  EXPECT_EQ(inverse_rank_transform({0, 0}, {4, 4}, -1), 4);
  EXPECT_EQ(inverse_rank_transform({0}, {4}, -1), 4);
}

}  // namespace
}  // namespace fettle::search::gp
