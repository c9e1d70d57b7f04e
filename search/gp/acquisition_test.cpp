// Expected improvement against numerical integration, and its derivatives.
#include "search/gp/acquisition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace fettle::search::gp {
namespace {

// log E[max(0, u + Z)] by Simpson's rule: phi(t - u) t over t > 0, with exp(-u^2 / 2) taken out
// where u is negative, so that nothing vanishes.
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
