// Forecasts of learning curves, and the normal distribution that they use.
#include "search/rungs/forecast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "search/maths/normal.h"

namespace fettle::search {
namespace {

// Values from tables.
TEST(Normal, CdfAndQuantile) {
  EXPECT_DOUBLE_EQ(normal_cdf(0), 0.5);
  EXPECT_NEAR(normal_cdf(1.959963984540054), 0.975, 1e-15);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-13);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 1e-12);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-11);
  for (const double p : {1e-12, 1e-5, 0.02, 0.3, 0.5, 0.9, 0.999}) {
    EXPECT_NEAR(normal_cdf(normal_quantile(p)) / p, 1, 1e-12) << p;
  }
}

std::vector<CurvePoint> power_law(double end, double gain, std::int64_t steps) {
  std::vector<CurvePoint> out;
  for (std::int64_t step = 1; step <= steps; ++step) {
    out.push_back({step, end + gain * std::pow(static_cast<double>(step), -0.5)});
  }
  return out;
}

TEST(Forecast, FindsTheEndOfACleanCurve) {
  const Forecast forecast(power_law(0.2, 0.6, 15), 30, 0.2);
  const double end = 0.2 + 0.6 * std::pow(30, -0.5);
  EXPECT_NEAR(forecast.mean(), end, 0.02);
  EXPECT_LT(forecast.probability_below(end - 0.15), 0.01);
  EXPECT_GT(forecast.probability_below(end + 0.15), 0.99);
}

TEST(Forecast, IsLessSureTheLessItHasSeen) {
  double before = 0;
  for (const std::int64_t seen : {20, 10, 5, 2, 1}) {
    const double chance = Forecast(power_law(0.2, 0.6, seen), 30, 0.2).probability_below(0.15);
    EXPECT_GT(chance, before) << seen;
    before = chance;
  }
  EXPECT_GT(before, 0.1);  // after one step a good end cannot be ruled out
}

TEST(Forecast, DoesNotDependOnUnits) {
  std::vector<CurvePoint> scaled = power_law(0.2, 0.6, 8);
  const double chance = Forecast(scaled, 30, 0.2).probability_below(0.25);
  for (CurvePoint& point : scaled) point.loss = 1e6 * point.loss - 5e6;
  EXPECT_NEAR(Forecast(scaled, 30, 0.2e6).probability_below(0.25e6 - 5e6), chance, 1e-6);
}

// Curves with noise and with shapes outside the model end below its quantiles about as often as it
// predicts.
TEST(Forecast, IsCalibrated) {
  Random random(5);
  int below_half = 0;
  int below_tenth = 0;
  constexpr int kCurves = 400;
  for (int i = 0; i < kCurves; ++i) {
    const double end = random.uniform();
    const double gain = 0.3 + random.uniform();
    const double rate = 0.3 + random.uniform();
    const auto loss = [&](std::int64_t step) {
      return end + gain * std::pow(static_cast<double>(step) + 1, -rate) + 0.01 * random.normal();
    };
    std::vector<CurvePoint> curve;
    for (std::int64_t step = 1; step <= 9; ++step) curve.push_back({step, loss(step)});
    const double chance = Forecast(curve, 27, 0.3).probability_below(loss(27));
    below_half += chance > 0.5;
    below_tenth += chance < 0.1;
  }
  EXPECT_NEAR(below_half, 0.5 * kCurves, 0.25 * kCurves);
  EXPECT_LT(below_tenth, kCurves / 5);
}

}  // namespace
}  // namespace fettle::search
