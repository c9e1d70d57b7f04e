// Expected improvement against numerical integration, and its derivatives.
#include "search/gp/acquisition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "search/gp/improvement.h"

namespace fettle::search::gp {
namespace {

// log E[max(0, u + Z)] by Simpson's rule: phi(t - u) t over t > 0. For negative u, exp(-u^2 / 2) is
// factored out, so that nothing underflows.
double integrated(double u) {
  constexpr int kIntervals = 200'000;
  const double width = u > 0 ? u + 40 : (u > -20 ? 40 : 800 / -u);
  const double step = width / kIntervals;
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double t = i * step;
    const double exponent = u > 0 ? -0.5 * (t - u) * (t - u) : u * t - 0.5 * t * t;
    const double weight = i == 0 || i == kIntervals ? 1 : (i % 2 == 1 ? 4 : 2);
    sum += weight * t * std::exp(exponent);
  }
  const double taken_out = u > 0 ? 0 : -0.5 * u * u;
  return std::log(sum * step / 3) - 0.5 * std::log(2 * std::numbers::pi) + taken_out;
}

TEST(LogImprovement, IsTheIntegral) {
  for (const double u : {6.0, 2.0, 0.5, 0.0, -0.1, -1.0, -3.0, -5.9, -6.1, -9.0, -20.0, -100.0}) {
    EXPECT_NEAR(log_improvement(u).value, integrated(u), 1e-9 * (1 + std::abs(integrated(u)))) << u;
  }
}

TEST(LogImprovement, IsSmoothWhereItsFormulaChanges) {
  const double below = log_improvement(-6 - 1e-9).value;
  const double above = log_improvement(-6 + 1e-9).value;
  EXPECT_NEAR(above - below, 2e-9 * log_improvement(-6).slope, 1e-12);
}

TEST(LogImprovement, IsFiniteHoweverFar) {
  for (const double u : {-1e3, -1e8, -1e100, 1e8}) {
    EXPECT_TRUE(std::isfinite(log_improvement(u).value)) << u;
    EXPECT_TRUE(std::isfinite(log_improvement(u).slope)) << u;
  }
}

// Phi(u) is the integral of phi, and phi(u) / Phi(u) the slope of its logarithm: between two values
// of u the slopes integrate to the difference of the values.
TEST(LogProbability, IsTheIntegralOfItsSlope) {
  EXPECT_NEAR(log_probability(0).value, std::log(0.5), 1e-15);
  EXPECT_NEAR(log_probability(-1.6448536269514722).value, std::log(0.05), 1e-13);
  EXPECT_NEAR(log_probability(-10).value, -53.23128515051247, 1e-12);
  constexpr int kIntervals = 20'000;
  for (const double u : {4.0, 1.0, -2.0, -6.5, -30.0}) {
    double sum = 0;
    for (int i = 0; i <= kIntervals; ++i) {
      const double weight = i == 0 || i == kIntervals ? 1 : (i % 2 == 1 ? 4 : 2);
      sum += weight * log_probability(u - static_cast<double>(i) / kIntervals).slope;
    }
    EXPECT_NEAR(log_probability(u).value - log_probability(u - 1).value, sum / (3 * kIntervals),
                1e-10)
        << u;
  }
  for (const double u : {-1e3, -1e8, 1e8}) {
    EXPECT_TRUE(std::isfinite(log_probability(u).value)) << u;
    EXPECT_TRUE(std::isfinite(log_probability(u).slope)) << u;
  }
}

// One and several objectives, with and without a model of feasibility.
TEST(Improvement, DerivativesAreRight) {
  constexpr double kStep = 1e-6;
  const std::vector<Losses> front = {{0.2, 0.9}, {0.5, 0.5}, {0.8, 0.1}};
  const std::vector<std::pair<Improvement, std::vector<NormalMarginal>>> cases = {
      {Improvement(0.3), {{0.5, 0.2}}},
      {Improvement(0.3), {{0.5, 0.2}, {0.4, 0.7}}},
      {Improvement(0.3, 0.05), {{0.5, 0.2}, {0.4, 0.7}}},
      {Improvement(front, {1, 1}), {{0.6, 0.3}, {0.7, 0.1}}},
      {Improvement(front, {1, 1}), {{0.6, 0.3}, {0.7, 0.1}, {-0.2, 0.05}}}};
  for (const auto& one : cases) {
    const Improvement& improvement = one.first;
    const std::vector<NormalMarginal>& at = one.second;
    std::vector<NormalMarginal> slopes;
    EXPECT_DOUBLE_EQ(improvement.log_value(at, &slopes), improvement.log_value(at));
    ASSERT_EQ(slopes.size(), at.size());
    const auto difference = [&](std::size_t k, double by_mean, double by_sigma) {
      std::vector<NormalMarginal> above = at;
      above[k] = {at[k].mean + by_mean, at[k].sigma + by_sigma};
      std::vector<NormalMarginal> below = at;
      below[k] = {at[k].mean - by_mean, at[k].sigma - by_sigma};
      return (improvement.log_value(above) - improvement.log_value(below)) / (2 * kStep);
    };
    for (std::size_t k = 0; k < at.size(); ++k) {
      EXPECT_NEAR(slopes[k].mean, difference(k, kStep, 0), 1e-6);
      EXPECT_NEAR(slopes[k].sigma, difference(k, 0, kStep), 1e-6);
    }
  }
}

TEST(Improvement, AWallTakesItsShare) {
  const Improvement improvement(0.3);
  const double free = improvement.log_value({{0.5, 0.2}});
  EXPECT_NEAR(improvement.log_value({{0.5, 0.2}, {0, 1}}), free + std::log(0.5), 1e-12);
  EXPECT_NEAR(improvement.log_value({{0.5, 0.2}, {-9, 1}}), free, 1e-12);
  EXPECT_LT(improvement.log_value({{0.5, 0.2}, {1, 0.1}}), free - 50);
}

TEST(Improvement, TheReferenceLiesATenthBehindTheFront) {
  EXPECT_EQ(reference_of({{0, 10}, {1, 5}, {2, 0}}), (Losses{2.2, 11}));
  const Losses single = reference_of({{1, 1}});
  EXPECT_GT(single[0], 1);
  EXPECT_GT(single[1], 1);
}

// Compares with the formula of the paper, at points where it is free of cancellation.
TEST(LogAugmentedImprovement, IsExpectedImprovementLessTheHiddenPart) {
  for (const double sd : {0.1, 1.0, 4.0}) {
    const LogExpectedImprovement free = log_expected_improvement(0.3, 0.7, sd);
    const LogExpectedImprovement none = log_augmented_improvement(0.3, 0.7, sd, 0);
    EXPECT_EQ(none.value, free.value);
    EXPECT_EQ(none.by_sd, free.by_sd);
    for (const double noise : {0.01, 0.5}) {
      const LogExpectedImprovement at = log_augmented_improvement(0.3, 0.7, sd, noise);
      const double share = 1 - std::sqrt(noise / (sd * sd + noise));
      EXPECT_NEAR(at.value, free.value + std::log(share), 1e-12);
      EXPECT_EQ(at.by_mean, free.by_mean);
    }
  }
  EXPECT_TRUE(std::isfinite(log_augmented_improvement(0, 0, 1e-9, 1).value));
}

TEST(LogExpectedImprovement, DerivativesAreRight) {
  constexpr double kStep = 1e-6;
  for (const double mean : {-2.0, 0.0, 0.7, 3.0, 12.0}) {
    for (const double sd : {0.2, 1.0, 5.0}) {
      const auto value = [](double m, double s) {
        return log_expected_improvement(0.3, m, s).value;
      };
      const LogExpectedImprovement at = log_expected_improvement(0.3, mean, sd);
      const double by_mean = (value(mean + kStep, sd) - value(mean - kStep, sd)) / (2 * kStep);
      const double by_sd = (value(mean, sd + kStep) - value(mean, sd - kStep)) / (2 * kStep);
      EXPECT_NEAR(at.by_mean, by_mean, 1e-6 * (1 + std::abs(by_mean)));
      EXPECT_NEAR(at.by_sd, by_sd, 1e-6 * (1 + std::abs(by_sd)));
    }
  }
}

}  // namespace
}  // namespace fettle::search::gp
