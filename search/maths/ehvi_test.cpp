// Expected improvements against numerical integration of their definition.
#include "search/maths/ehvi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "search/maths/normal.h"

namespace fettle::search {
namespace {

constexpr double kReach = 8;  // standard deviations that an integral covers

double density(double x, const NormalMarginal& normal) {
  return normal_density((x - normal.mean) / normal.sigma) / normal.sigma;
}

// The hypervolume that `point` adds to `points`; independent of boxes.
double gain_of(std::vector<Losses> points, const Losses& point, const Losses& reference) {
  const double before = *hypervolume(points, reference);
  points.push_back(point);
  return *hypervolume(points, reference) - before;
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
    sum += weight * gain_of(points, y, reference);
  }
  return sum;
}

TEST(ExpectedImprovement, IsTheIntegralBelowTheBest) {
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

TEST(ExpectedHypervolume, OfThreeObjectivesIsExact) {
  const Losses reference = {3, 3, 3};
  const std::vector<std::vector<Losses>> fronts = {
      {},
      {{1, 2, 2}, {2, 1, 2}, {2, 2, 1}, {0.5, 2.5, 2.5}},
      {{1, 1, 2}, {1, 2, 1}, {2, 1, 1}, {2, 2, 2}, {-1, 4, 0}, {1, 1, 2}}};
  for (const std::vector<Losses>& front : fronts) {
    for (const std::vector<NormalMarginal>& candidate :
         {std::vector<NormalMarginal>{{1.5, 0.5}, {1.5, 0.5}, {1.5, 0.5}},
          std::vector<NormalMarginal>{{2, 1}, {1, 0.3}, {2.5, 0.6}}}) {
      const double truth = integrated(front, reference, candidate, 80);
      const double exact = ExpectedHypervolume(front, reference).improvement(candidate);
      EXPECT_NEAR(exact, truth, 6e-3 * truth);  // the integral is no more accurate
    }
  }
}

std::vector<Losses> random_points(Random& random, int count, std::size_t objectives) {
  std::vector<Losses> out;
  for (int i = 0; i < count; ++i) {
    Losses point;
    for (std::size_t k = 0; k < objectives; ++k) point.push_back(random.uniform());
    out.push_back(point);
  }
  return out;
}

// For a certain point the expectation is the plain gain, which is independent of boxes.
TEST(ExpectedHypervolume, AgreesWithTheGainOnRandomFronts) {
  Random random(3);
  for (const std::size_t objectives : {2U, 3U}) {
    const Losses reference(objectives, 0.9);
    for (int round = 0; round < 200; ++round) {
      std::vector<Losses> points = random_points(random, round % 20, objectives);
      if (round % 3 == 0) {  // many equal coordinates
        for (Losses& point : points) {
          for (double& loss : point) loss = std::round(4 * loss) / 4;
        }
      }
      const Losses point = random_points(random, 1, objectives)[0];
      std::vector<NormalMarginal> certain;
      for (const double loss : point) certain.push_back({loss, 0});
      EXPECT_NEAR(ExpectedHypervolume(points, reference).improvement(certain),
                  gain_of(points, point, reference), 1e-12);
    }
  }
}

TEST(ExpectedHypervolume, BoxesAreFewAndDoNotOverlap) {
  Random random(4);
  const std::vector<Losses> points = random_points(random, 60, 3);
  const std::vector<Box> boxes = free_boxes(points, {1, 1, 1});
  EXPECT_LE(boxes.size(), 2 * points.size() + 1);
  for (int i = 0; i < 1000; ++i) {
    const Losses place = random_points(random, 1, 3)[0];
    const auto holds = [&](const Box& box) {
      bool inside = true;
      for (std::size_t k = 0; k < 3; ++k) {
        inside = inside && box.low[k] <= place[k] && place[k] < box.high[k];
      }
      return inside;
    };
    const bool dominated = std::any_of(
        points.begin(), points.end(), [&](const Losses& point) { return dominates(point, place); });
    EXPECT_EQ(std::count_if(boxes.begin(), boxes.end(), holds), dominated ? 0 : 1);
  }
}

TEST(ExpectedHypervolume, SlopesMatchFiniteDifferences) {
  Random random(5);
  constexpr double kStep = 1e-5;
  for (const std::size_t objectives : {2U, 3U}) {
    const ExpectedHypervolume front(random_points(random, 15, objectives), Losses(objectives, 1.1));
    for (int round = 0; round < 20; ++round) {
      std::vector<NormalMarginal> at;
      const Losses means = random_points(random, 1, objectives)[0];
      for (const double mean : means) {
        at.push_back({mean, 0.05 + 0.3 * random.uniform()});
      }
      std::vector<NormalMarginal> slopes;
      EXPECT_DOUBLE_EQ(front.improvement(at, &slopes), front.improvement(at));
      const auto difference = [&](double& of) {
        const double here = of;
        of = here + kStep;
        const double above = front.improvement(at);
        of = here - kStep;
        const double below = front.improvement(at);
        of = here;
        return (above - below) / (2 * kStep);
      };
      for (std::size_t k = 0; k < objectives; ++k) {
        EXPECT_NEAR(slopes[k].mean, difference(at[k].mean), 1e-8);
        EXPECT_NEAR(slopes[k].sigma, difference(at[k].sigma), 1e-8);
      }
    }
  }
}

TEST(ExpectedHypervolume, CertaintyIsThePlainGain) {
  const std::vector<Losses> front = {{1, 2, 2}, {2, 1, 2}};
  const Losses reference = {3, 3, 3};
  EXPECT_DOUBLE_EQ(
      ExpectedHypervolume(front, reference).improvement({{1.5, 0}, {1.5, 0}, {1.5, 0}}),
      gain_of(front, {1.5, 1.5, 1.5}, reference));
  EXPECT_DOUBLE_EQ(ExpectedHypervolume({{1, 2}}, {3, 3}).improvement({{2, 0}, {1, 0}}), 1);
  EXPECT_DOUBLE_EQ(ExpectedHypervolume({{1, 2}}, {3, 3}).improvement({{2, 0}, {2.5, 0}}), 0);
}

TEST(ExpectedHypervolume, GrowsWithUncertaintyBehindTheFront) {
  const ExpectedHypervolume front({{1, 1}}, {3, 3});
  EXPECT_LT(front.improvement({{2, 0.1}, {2, 0.1}}), front.improvement({{2, 1}, {2, 1}}));
}

}  // namespace
}  // namespace fettle::search
