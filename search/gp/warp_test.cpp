// Targets from outcomes: order, scale and outliers.
#include "search/gp/warp.h"

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
  for (const double value : values)
    out.push_back({value, !out.empty() && out.back().loss == value});
  return out;
}

TEST(Warp, ANormalSampleStaysAlmostAsItIs) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(7 + 3 * normal_quantile((i + 0.5) / 200));
  const std::vector<double> warped = warp(losses(values));
  for (int i = 0; i < 200; ++i) {
    EXPECT_NEAR(warped[static_cast<std::size_t>(i)], normal_quantile((i + 0.5) / 200), 0.02);
  }
}

TEST(Warp, TheBadHalfCountsByRankOnly) {
  const std::vector<double> tame = warp(losses({1, 2, 3, 4, 5, 6}));
  const std::vector<double> wild = warp(losses({1, 2, 3, 4, 5e9, 1e300}));
  for (std::size_t i = 0; i < tame.size(); ++i) EXPECT_DOUBLE_EQ(tame[i], wild[i]);
}

TEST(Warp, DistancesCountAmongTheGood) {
  const std::vector<double> warped = warp(losses({0, 1, 1.5, 2, 7, 8, 9, 10}));
  EXPECT_NEAR((warped[1] - warped[0]) / (warped[2] - warped[1]), 2, 1e-9);
}

TEST(Warp, AnOutlierOnTheGoodSideIsReinedIn) {
  const std::vector<double> warped = warp(losses({-1e12, 1, 1.1, 1.2, 1.3, 2, 3, 4, 5, 6}));
  EXPECT_LT(warped[0], warped[1]);
  EXPECT_GT(warped[0], -4);
  EXPECT_GT(warped[2] - warped[1], 0.02);
}

TEST(Warp, TrialsWithoutAValueComeLastAndTiesAreEqual) {
  std::vector<Ranked> order = losses({3, 1, 1, 2});
  order.push_back({std::nullopt, false});
  order.push_back({std::nullopt, true});
  const std::vector<double> warped = warp(order);
  EXPECT_EQ(warped[0], warped[1]);
  EXPECT_EQ(warped[4], warped[5]);
  EXPECT_GT(warped[4], warped[3]);
}

TEST(Warp, APlateauOfEqualOutcomesIsOneTarget) {
  const std::vector<double> warped = warp(losses({0.1, 0.2, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}));
  for (std::size_t i = 3; i < warped.size(); ++i) EXPECT_EQ(warped[2], warped[i]);
  EXPECT_LT(warped[0], warped[1]);
  EXPECT_LT(warped[1], warped[2]);
}

TEST(Warp, AnythingGivesFiniteTargetsInOrder) {
  const double largest = std::numeric_limits<double>::max();
  for (const std::vector<double>& values : {std::vector<double>{},
                                            {5},
                                            {2, 2, 2},
                                            {-largest, largest},
                                            {-largest, 0, 1, 2, largest},
                                            {0, 5e-324, 1e-300, 1},
                                            {0, 0, 0, 0, 1}}) {
    const std::vector<double> warped = warp(losses(values));
    ASSERT_EQ(warped.size(), values.size());
    EXPECT_TRUE(std::is_sorted(warped.begin(), warped.end()));
    for (const double target : warped) EXPECT_TRUE(std::isfinite(target));
  }
  for (const double target : warp({{std::nullopt, false}, {std::nullopt, true}})) {
    EXPECT_EQ(target, 0);
  }
}

TEST(Warp, MoreThanHalfMayKeepTheirValues) {
  const std::vector<double> warped = warp(losses({0, 1, 2, 3, 4, 100}), 5);
  EXPECT_NEAR(warped[4] - warped[3], warped[1] - warped[0], 1e-12);
  EXPECT_LT(warped[5] - warped[4], 3 * (warped[4] - warped[3]));
}

TEST(Unwarp, TargetsStandForTheLossesThatTheyWereMadeOf) {
  const std::vector<double> values = {-3, 0, 0, 1, 1.5, 2, 7, 8, 9, 1e300};
  const std::vector<double> targets = warp(losses(values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_DOUBLE_EQ(unwarp(targets, values, targets[i]), values[i]);
  }
  EXPECT_DOUBLE_EQ(unwarp(targets, values, 0.5 * (targets[6] + targets[7])), 7.5);
  EXPECT_EQ(unwarp(targets, values, targets.back() + 5), values.back());
}

TEST(Unwarp, BeyondTheBestItGoesOnAsOverTheBetterHalf) {
  const std::vector<double> values = {0, 1, 2, 3, 50, 60};
  const std::vector<double> targets = warp(losses(values));
  EXPECT_NEAR(unwarp(targets, values, 2 * targets[0] - targets[1]), -1, 1e-9);
  EXPECT_EQ(unwarp({0, 0}, {4, 4}, -1), 4);
  EXPECT_EQ(unwarp({0}, {4}, -1), 4);
}

}  // namespace
}  // namespace fettle::search::gp
