// Fronts, crowding and hypervolumes against known values: the fronts of ZDT and DTLZ problems,
// whose volumes have formulas, and inclusion-exclusion by brute force.
#include "search/maths/pareto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/philox.h"
#include "search/maths/ranking.h"

namespace fettle::search {
namespace {

using ::testing::ElementsAre;

std::vector<Losses> random_points(Random& random, int count, std::size_t objectives, int grid) {
  std::vector<Losses> out;
  for (int i = 0; i < count; ++i) {
    Losses point(objectives);
    for (double& loss : point) {
      loss = static_cast<double>(random.below(static_cast<std::uint64_t>(grid))) / grid;
    }
    out.push_back(point);
  }
  return out;
}

// The share of grid cells that some point dominates, for points on that grid.
double counted_volume(const std::vector<Losses>& points, std::size_t objectives, int grid) {
  const auto cells = static_cast<std::size_t>(std::pow(grid, static_cast<double>(objectives)));
  std::size_t covered = 0;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    Losses corner(objectives);
    std::size_t rest = cell;
    for (double& coordinate : corner) {
      coordinate = static_cast<double>(rest % static_cast<std::size_t>(grid)) / grid;
      rest /= static_cast<std::size_t>(grid);
    }
    covered += std::any_of(points.begin(), points.end(), [&](const Losses& point) {
      for (std::size_t i = 0; i < objectives; ++i) {
        if (point[i] > corner[i]) return false;
      }
      return true;
    });
  }
  return static_cast<double>(covered) / static_cast<double>(cells);
}

TEST(Dominance, IsStrictSomewhereAndWorseNowhere) {
  EXPECT_TRUE(dominates({1, 2}, {1, 3}));
  EXPECT_FALSE(dominates({1, 2}, {1, 2}));
  EXPECT_FALSE(dominates({1, 3}, {2, 2}));
}

TEST(Fronts, ArePeeledOffOneByOne) {
  EXPECT_THAT(front_numbers({{3, 3}, {1, 2}, {2, 1}, {2, 2}, {1, 2}}), ElementsAre(2, 0, 0, 1, 0));
  EXPECT_TRUE(front_numbers({}).empty());
}

TEST(Fronts, EachIsDominatedByTheOneBeforeAndByNoneOfItsOwn) {
  Random random(1);
  for (std::size_t objectives = 1; objectives <= 5; ++objectives) {
    const std::vector<Losses> points = random_points(random, 150, objectives, 12);
    const std::vector<std::size_t> fronts = front_numbers(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      bool by_front_before = fronts[i] == 0;
      for (std::size_t j = 0; j < points.size(); ++j) {
        if (!dominates(points[j], points[i])) continue;
        EXPECT_LT(fronts[j], fronts[i]);
        by_front_before |= fronts[j] + 1 == fronts[i];
      }
      EXPECT_TRUE(by_front_before);
    }
  }
}

TEST(Crowding, IsTheGapBetweenNeighboursAsAShareOfTheRange) {
  constexpr double kEnd = std::numeric_limits<double>::infinity();
  EXPECT_THAT(crowding_distances({{0, 10}, {10, 0}, {2, 6}, {4, 4}}),
              ElementsAre(kEnd, kEnd, 0.4 + 0.6, 0.8 + 0.6));
  EXPECT_THAT(crowding_distances({{1, 2}, {2, 1}}), ElementsAre(kEnd, kEnd));
  const std::vector<double> huge = crowding_distances({{-1e308, 1e308}, {0, 0}, {1e308, -1e308}});
  EXPECT_EQ(huge[1], 2);
  for (const double distance : crowding_distances({{5, 5}, {5, 5}, {5, 5}})) {
    EXPECT_FALSE(std::isnan(distance));
  }
}

TEST(Hypervolume, OfOneObjectiveIsALength) { EXPECT_EQ(hypervolume({{2}, {1}, {5}}, {4}), 3); }

TEST(Hypervolume, OfFewPointsCanBeCountedByHand) {
  EXPECT_EQ(hypervolume({{1, 2}, {2, 1}}, {3, 3}), 3);
  EXPECT_EQ(hypervolume({{1, 2}, {2, 1}, {2, 2}}, {3, 3}), 3);
  EXPECT_EQ(hypervolume({{1, 1, 1}}, {2, 3, 4}), 6);
  EXPECT_EQ(hypervolume({{1, 2, 2}, {2, 1, 2}, {2, 2, 1}}, {3, 3, 3}), 4);
  EXPECT_EQ(hypervolume({}, {1, 1}), 0);
  EXPECT_EQ(hypervolume({{0, 5}, {1, 0}}, {1, 1}), 0) << "no better than the reference";
}

// x in [0, 1] gives a front f2 = g(f1); with many points the volume nears its integral.
TEST(Hypervolume, NearsTheIntegralOfZdtFronts) {
  constexpr int kPoints = 20000;
  std::vector<Losses> zdt1;
  std::vector<Losses> zdt2;
  for (int i = 0; i <= kPoints; ++i) {
    const double x = static_cast<double>(i) / kPoints;
    zdt1.push_back({x, 1 - std::sqrt(x)});
    zdt2.push_back({x, 1 - x * x});
  }
  // 1.1 * 1.1 minus the area below the front: 1/3 for ZDT1, 2/3 for ZDT2.
  EXPECT_NEAR(*hypervolume(zdt1, {1.1, 1.1}), 1.21 - 1.0 / 3, 2e-4);
  EXPECT_NEAR(*hypervolume(zdt2, {1.1, 1.1}), 1.21 - 2.0 / 3, 2e-4);
}

TEST(Hypervolume, NearsTheIntegralOfDtlzFronts) {
  // DTLZ1: the plane f1 + f2 + f3 = 0.5; DTLZ2: an eighth of the unit sphere.
  constexpr int kSteps = 40;
  std::vector<Losses> plane;
  std::vector<Losses> sphere;
  for (int i = 0; i <= kSteps; ++i) {
    for (int j = 0; i + j <= kSteps; ++j) {
      const Losses share = {0.5 * i / kSteps, 0.5 * j / kSteps, 0.5 * (kSteps - i - j) / kSteps};
      plane.push_back(share);
      const double length = std::hypot(share[0], share[1], share[2]);
      sphere.push_back({share[0] / length, share[1] / length, share[2] / length});
    }
  }
  const auto within = [](std::optional<double> volume, double limit, double shortfall) {
    ASSERT_TRUE(volume.has_value());
    EXPECT_LT(*volume, limit);  // finitely many points cover less than the whole front
    EXPECT_GT(*volume, limit - shortfall);
  };
  within(hypervolume(plane, {0.6, 0.6, 0.6}), 0.216 - 0.125 / 6, 0.01);
  within(hypervolume(sphere, {1.1, 1.1, 1.1}), 1.331 - std::numbers::pi / 6, 0.05);
}

TEST(Hypervolume, MatchesTheCountOfCells) {
  Random random(2);
  for (std::size_t objectives = 2; objectives <= 5; ++objectives) {
    const int grid = objectives < 4 ? 12 : 6;
    const std::vector<Losses> points = random_points(random, 25, objectives, grid);
    EXPECT_NEAR(*hypervolume(points, Losses(objectives, 1.0)),
                counted_volume(points, objectives, grid), 1e-12)
        << objectives;
  }
}

TEST(Hypervolume, GivesUpRatherThanTakeForEver) {
  Random random(4);
  std::vector<Losses> sphere;
  for (int i = 0; i < 400; ++i) {
    Losses point(8);
    double length = 0;
    for (double& loss : point) loss = std::abs(random.normal());
    for (const double loss : point) length += loss * loss;
    for (double& loss : point) loss /= std::sqrt(length);
    sphere.push_back(point);
  }
  EXPECT_FALSE(hypervolume(sphere, Losses(8, 1.1)).has_value());
  sphere.resize(100);
  for (Losses& point : sphere) point.resize(4);
  EXPECT_TRUE(hypervolume(sphere, Losses(4, 1.1)).has_value());
}

TEST(Hypervolume, OfOverflowingLossesIsAbsent) {
  EXPECT_FALSE(hypervolume({{-1e300, -1e300}}, {1e300, 1e300}).has_value());
}

}  // namespace
}  // namespace fettle::search
