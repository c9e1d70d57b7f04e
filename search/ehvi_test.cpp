// Expected improvements against numerical integration of their definition.
#include "search/ehvi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "search/normal.h"

namespace fettle::search {
namespace {

constexpr double kReach = 8;  // standard deviations that an integral covers

double density(double x, const NormalMarginal& normal) {
  return normal_density((x - normal.mean) / normal.sigma) / normal.sigma;
}

// E[gain of (Y1, ..., Ym)] by the midpoint rule over a box of kReach deviations.
double integrated(const std::vector<Losses>& points, const Losses& reference,
                  const std::vector<NormalMarginal>& losses, int steps) {
  double sum = 0;
  const auto objectives = losses.size();
  const auto cells = static_cast<std::size_t>(std::pow(steps, static_cast<double>(objectives)));
  for (std::size_t cell = 0; cell < cells; ++cell) {
    double weight = 1;
    std::size_t rest = cell;
    Losses y(objectives);
    for (std::size_t i = 0; i < objectives; ++i) {
      const double width = 2 * kReach * losses[i].sigma / steps;
      const auto place = static_cast<double>(rest % static_cast<std::size_t>(steps));
      rest /= static_cast<std::size_t>(steps);
      y[i] = losses[i].mean - kReach * losses[i].sigma + (place + 0.5) * width;
      weight *= density(y[i], losses[i]) * width;
    }
    sum += weight * *hypervolume_gain(points, y, reference);
  }
  return sum;
}

TEST(ExpectedImprovement, IsTheIntegralOfWhatFallsBelow) {
  for (const double threshold : {-2.0, 0.3, 1.0, 4.0}) {
    const NormalMarginal loss = {0.5, 0.7};
    double sum = 0;
    constexpr int kSteps = 200000;
    const double width = 2 * kReach * loss.sigma / kSteps;
    for (int i = 0; i < kSteps; ++i) {
      const double y = loss.mean - kReach * loss.sigma + (i + 0.5) * width;
      sum += std::max(threshold - y, 0.0) * density(y, loss) * width;
    }
    EXPECT_NEAR(expected_improvement(threshold, loss), sum, 1e-9);
  }
  EXPECT_EQ(expected_improvement(3, {1, 0}), 2);
  EXPECT_EQ(expected_improvement(1, {3, 0}), 0);
}

TEST(ExpectedHypervolume, OfTwoObjectivesIsExact) {
  const Losses reference = {4, 4};
  const std::vector<std::vector<Losses>> fronts = {
      {}, {{2, 2}}, {{1, 3}, {2, 2}, {3, 1}}, {{1, 3}, {2.5, 2.5}, {3, 0.5}, {3.5, 3.5}, {5, -1}}};
  const std::vector<std::vector<NormalMarginal>> candidates = {
      {{1.5, 0.5}, {1.5, 0.8}}, {{3, 1}, {3, 1}}, {{0, 0.2}, {5, 1}}, {{-1, 2}, {2, 0.1}}};
  for (const std::vector<Losses>& front : fronts) {
    for (const std::vector<NormalMarginal>& candidate : candidates) {
      const double exact = ExpectedHypervolume(front, reference).improvement(candidate);
      EXPECT_NEAR(exact, integrated(front, reference, candidate, 300), 5e-4 * (1 + exact));
    }
  }
}

TEST(ExpectedHypervolume, OfThreeObjectivesIsCloseToTheIntegral) {
  const Losses reference = {3, 3, 3};
  const std::vector<Losses> front = {{1, 2, 2}, {2, 1, 2}, {2, 2, 1}, {0.5, 2.5, 2.5}};
  for (const std::vector<NormalMarginal>& candidate :
       {std::vector<NormalMarginal>{{1.5, 0.5}, {1.5, 0.5}, {1.5, 0.5}},
        std::vector<NormalMarginal>{{2, 1}, {1, 0.3}, {2.5, 0.6}}}) {
    const double truth = integrated(front, reference, candidate, 80);
    const double drawn = ExpectedHypervolume(front, reference).improvement(candidate);
    EXPECT_NEAR(drawn, truth, 0.03 * truth);
  }
}

TEST(ExpectedHypervolume, CertaintyIsThePlainGain) {
  const std::vector<Losses> front = {{1, 2, 2}, {2, 1, 2}};
  const Losses reference = {3, 3, 3};
  EXPECT_DOUBLE_EQ(
      ExpectedHypervolume(front, reference).improvement({{1.5, 0}, {1.5, 0}, {1.5, 0}}),
      *hypervolume_gain(front, {1.5, 1.5, 1.5}, reference));
  EXPECT_DOUBLE_EQ(ExpectedHypervolume({{1, 2}}, {3, 3}).improvement({{2, 0}, {1, 0}}), 1);
  EXPECT_DOUBLE_EQ(ExpectedHypervolume({{1, 2}}, {3, 3}).improvement({{2, 0}, {2.5, 0}}), 0);
}

TEST(ExpectedHypervolume, GrowsWithUncertaintyBehindTheFront) {
  const ExpectedHypervolume front({{1, 1}}, {3, 3});
  EXPECT_LT(front.improvement({{2, 0.1}, {2, 0.1}}), front.improvement({{2, 1}, {2, 1}}));
}

}  // namespace
}  // namespace fettle::search
